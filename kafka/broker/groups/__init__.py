"""The group coordinator: the members of each group, their assignments, and the committed offsets.

Sans-IO: nothing here opens a socket, reads the system's clock or knows of an event loop. Time, timers, randomness and
what is known of topics come in through ``interfaces``; requests that have to wait (JoinGroup, SyncGroup) get an
:class:`~kafka.broker.groups.interfaces.Answer`, which is filled later.

The modules, from the inside out::

    interfaces   what the coordinator needs from the broker, and the answer that may come later
    settings     the broker's group.* and offsets.* properties
    members      the members of a classic group: protocols, votes, leader, static members
    classic      a classic group: states, rebalances, timers
    assignors    range and uniform, for the consumer protocol (KIP-848)
    pattern      RE2 expressions, matched in linear time
    reconcile    one step of one member towards its target assignment
    consumer     a consumer group (KIP-848): epochs, target assignment, fencing, timers
    classic_members classic members of a consumer group: JoinGroup, SyncGroup and Heartbeat against epochs
    migration    from a classic group to a consumer group and back, with its members alive
    offsets      committed offsets of one group, also of open transactions, and their expiry
    coordinator  all groups: lookup, conversion, list, describe, delete
"""
