"""Programs in the style of each generation of kafka-python: ``python -m test.programs.kafka_python_2_0 SERVERS PREFIX``.

Each uses the names, call shapes and idioms of its time and prints ``done`` at its end. PREFIX begins the names of its
topics and groups.
"""
