"""The transaction coordinator: producer ids, epochs that fence, transactions that end everywhere or nowhere.

Sans-IO as ``kafka.broker.groups`` is; markers are written through a ``MarkerLog``, offsets through the group
coordinator.

    transaction  one transactional id: its state, its producer, its present transaction
    coordinator  all of them: fencing, adding, ending, timeouts, expiry
    service      the coordinator as a service of a cluster, and the gate before transactional appends
"""
