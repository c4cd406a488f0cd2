"""Identity and permissions of clients: SASL on the broker's side, TLS, SCRAM credentials, access control lists.

The mechanisms and the access control lists are sans-IO and know no cluster; ``service`` binds them to one.

    acls         bindings, filters, and the decision whether something is allowed
    credentials  SCRAM users and delegation tokens (KIP-48)
    sasl         PLAIN, SCRAM and OAUTHBEARER, and one connection's authentication, once or again (KIP-368)
    tls          a server's SSLContext, and the principal of a client's certificate
    service      all of it for a cluster
"""
