"""The group coordinator: the members of each group, their assignments, and the committed offsets.

Sans-IO: nothing here opens a socket, reads the system's clock or knows of an event loop. Time, timers, randomness and
what is known of topics come in as arguments; requests that have to wait (JoinGroup, SyncGroup) get an
:class:`~kafka.broker.groups.group.Answer`, which is filled later.

The modules, from the inside out::

    settings         the broker's group.* and offsets.* properties
    pattern          RE2 expressions, matched in linear time
    assignors        range and uniform, for the consumer protocol (KIP-848)
    group            what the coordinator asks of a group of any kind; a member of any kind
    classic_member   a classic group's members: protocols, votes, leader, static members; the states of the group
    classic_group    a classic group: rebalances, timers
    epoch_group      the common part of consumer, share and streams groups
    consumer_member  a consumer group's member (KIP-848), and one step towards its target assignment
    consumer_group   a consumer group: epochs, target assignment, fencing, timers
    share_group      a share group (KIP-932)
    streams_topology subtopologies, their topics and tasks
    streams_group    a streams group (KIP-1071)
    migration        from a classic group to a consumer group and back, with its members alive
    offsets          committed offsets of one group, also of open transactions, and their expiry
    persistence      dataclasses as JSON data, for a broker with a data directory
    coordinator      all groups: lookup, conversion, list, describe, delete
    service          the coordinator as a service of a cluster
"""
