"""The options of Kafka 4.3's brokers that have no effect on the embedded broker.

They are described as Kafka describes them, and one that Kafka can change at run time can be changed here, so that tools
that set and read it work. The broker refuses them among the options that it is started with.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.configs.option import Kind, Option

#: Type, whether it can change at run time, and names with their defaults; a name alone has none, "" is an empty one.
_TABLE: Final = (
    (Kind.BOOLEAN, False, """
        auto.leader.rebalance.enable true
        controlled.shutdown.enable true
        controller.quorum.auto.join.enable false
        log.cleaner.enable true
        remote.log.storage.system.enable false
        sasl.oauthbearer.assertion.claim.jti.include false
        ssl.allow.dn.changes false
        ssl.allow.san.changes false
        transaction.two.phase.commit.enable false
    """),
    (Kind.BOOLEAN, True, """
        follower.fetch.last.tiered.offset.enable false
        transaction.partition.verification.enable true
    """),
    (Kind.STRING, False, """
        inter.broker.listener.name
        metadata.log.dir
        metrics.recording.level INFO
        remote.log.metadata.manager.class.name \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
        remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix rlmm.config.
        remote.log.metadata.manager.listener.name
        remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix rsm.config.
        sasl.mechanism.controller.protocol GSSAPI
        sasl.oauthbearer.assertion.algorithm RS256
        sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name scope
        sasl.oauthbearer.sub.claim.name sub
        sasl.oauthbearer.token.endpoint.url
        security.inter.broker.protocol PLAINTEXT
        security.providers
        ssl.principal.mapping.rules DEFAULT
    """),
    (Kind.STRING, True, """
        listener.security.protocol.map SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
        max.connections.per.ip.overrides ""
        sasl.kerberos.kinit.cmd /usr/bin/kinit
        sasl.kerberos.service.name
        sasl.mechanism.inter.broker.protocol GSSAPI
        ssl.client.auth none
        ssl.endpoint.identification.algorithm https
        ssl.keymanager.algorithm SunX509
        ssl.keystore.location
        ssl.keystore.type JKS
        ssl.protocol TLSv1.3
        ssl.provider
        ssl.secure.random.implementation
        ssl.trustmanager.algorithm PKIX
        ssl.truststore.location
        ssl.truststore.type JKS
    """),
    (Kind.INT, False, """
        add.partitions.to.txn.retry.backoff.max.ms 100
        add.partitions.to.txn.retry.backoff.ms 20
        alter.log.dirs.replication.quota.window.num 11
        alter.log.dirs.replication.quota.window.size.seconds 1
        broker.heartbeat.interval.ms 2000
        broker.session.timeout.ms 9000
        connection.failed.authentication.delay.ms 100
        controller.quorum.append.linger.ms 25
        controller.quorum.election.backoff.max.ms 1000
        controller.quorum.election.timeout.ms 1000
        controller.quorum.fetch.max.bytes 1048576
        controller.quorum.fetch.snapshot.max.bytes 1048576
        controller.quorum.fetch.timeout.ms 2000
        controller.quorum.request.timeout.ms 2000
        controller.quorum.retry.backoff.ms 20
        controller.quota.window.num 11
        controller.quota.window.size.seconds 1
        controller.socket.timeout.ms 30000
        delete.records.purgatory.purge.interval.requests 1
        fetch.purgatory.purge.interval.requests 1000
        group.coordinator.append.linger.ms -1
        group.coordinator.background.threads 2
        group.coordinator.threads 4
        initial.broker.registration.timeout.ms 60000
        kafka.metrics.polling.interval.secs 10
        log.flush.offset.checkpoint.interval.ms 60000
        log.flush.start.offset.checkpoint.interval.ms 60000
        log.retention.minutes
        log.roll.jitter.hours 0
        max.request.partition.size.limit 2000
        metadata.log.segment.bytes 1073741824
        metadata.max.idle.interval.ms 500
        metrics.num.samples 2
        num.replica.alter.log.dirs.threads
        offsets.commit.timeout.ms 5000
        offsets.load.buffer.size 5242880
        offsets.topic.compression.codec 0
        offsets.topic.num.partitions 50
        offsets.topic.segment.bytes 104857600
        producer.purgatory.purge.interval.requests 1000
        queued.max.requests 500
        quota.window.num 11
        quota.window.size.seconds 1
        remote.log.manager.copy.quota.window.num 11
        remote.log.manager.copy.quota.window.size.seconds 1
        remote.log.manager.fetch.quota.window.num 11
        remote.log.manager.fetch.quota.window.size.seconds 1
        remote.log.manager.thread.pool.size 2
        remote.log.metadata.custom.metadata.max.bytes 128
        remote.log.reader.max.pending.tasks 100
        replica.fetch.backoff.ms 1000
        replica.fetch.max.bytes 1048576
        replica.fetch.min.bytes 1
        replica.fetch.response.max.bytes 10485760
        replica.fetch.wait.max.ms 500
        replica.socket.receive.buffer.bytes 65536
        replica.socket.timeout.ms 30000
        replication.quota.window.num 11
        replication.quota.window.size.seconds 1
        request.timeout.ms 30000
        sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms
        sasl.oauthbearer.assertion.claim.exp.seconds 300
        sasl.oauthbearer.assertion.claim.nbf.seconds 60
        sasl.oauthbearer.clock.skew.seconds 30
        sasl.server.max.receive.size 524288
        share.coordinator.append.linger.ms -1
        share.coordinator.load.buffer.size 5242880
        share.coordinator.snapshot.update.records.per.snapshot 500
        share.coordinator.state.topic.compression.codec 0
        share.coordinator.state.topic.num.partitions 50
        share.coordinator.state.topic.segment.bytes 104857600
        share.coordinator.threads 1
        share.coordinator.write.timeout.ms 5000
        share.fetch.purgatory.purge.interval.requests 1000
        socket.listen.backlog.size 50
        socket.receive.buffer.bytes 102400
        socket.send.buffer.bytes 102400
        transaction.abort.timed.out.transaction.cleanup.interval.ms 10000
        transaction.remove.expired.transaction.cleanup.interval.ms 3600000
        transaction.state.log.load.buffer.size 5242880
        transaction.state.log.min.isr 2
        transaction.state.log.num.partitions 50
        transaction.state.log.segment.bytes 104857600
    """),
    (Kind.INT, True, """
        background.threads 10
        group.coordinator.cached.buffer.max.bytes 1048588
        log.cleaner.io.buffer.size 524288
        log.cleaner.threads 1
        max.connection.creation.rate 2147483647
        max.connections 2147483647
        max.connections.per.ip 2147483647
        num.io.threads 8
        num.network.threads 3
        num.recovery.threads.per.data.dir 2
        num.replica.fetchers 1
        producer.id.expiration.ms 86400000
        remote.fetch.max.wait.ms 500
        remote.log.manager.copier.thread.pool.size 10
        remote.log.manager.expiration.thread.pool.size 10
        remote.log.manager.follower.thread.pool.size 2
        remote.log.reader.threads 10
        share.coordinator.cached.buffer.max.bytes 1048588
    """),
    (Kind.SHORT, False, """
        offsets.topic.replication.factor 3
        share.coordinator.state.topic.min.isr 2
        share.coordinator.state.topic.replication.factor 3
        transaction.state.log.replication.factor 3
    """),
    (Kind.SHORT, True, """
        sasl.login.refresh.buffer.seconds 300
        sasl.login.refresh.min.period.seconds 60
    """),
    (Kind.LONG, False, """
        delegation.token.expiry.check.interval.ms 3600000
        leader.imbalance.check.interval.seconds 300
        log.dir.failure.timeout.ms 30000
        log.flush.scheduler.interval.ms 9223372036854775807
        metadata.log.max.record.bytes.between.snapshots 20971520
        metadata.log.max.snapshot.interval.ms 3600000
        metadata.log.segment.ms 604800000
        metadata.max.retention.bytes 104857600
        metadata.max.retention.ms 604800000
        metrics.sample.window.ms 30000
        queued.max.request.bytes -1
        remote.log.manager.task.interval.ms 30000
        replica.high.watermark.checkpoint.interval.ms 5000
        replica.lag.time.max.ms 30000
        sasl.login.retry.backoff.max.ms 10000
        sasl.login.retry.backoff.ms 100
        sasl.oauthbearer.jwks.endpoint.refresh.ms 3600000
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms 10000
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms 100
        socket.connection.setup.timeout.max.ms 30000
        socket.connection.setup.timeout.ms 10000
    """),
    (Kind.LONG, True, """
        log.cleaner.dedupe.buffer.size 134217728
        remote.list.offsets.request.timeout.ms 30000
        remote.log.index.file.cache.total.size.bytes 1073741824
        remote.log.manager.copy.max.bytes.per.second 9223372036854775807
        remote.log.manager.fetch.max.bytes.per.second 9223372036854775807
        sasl.kerberos.min.time.before.relogin 60000
    """),
    (Kind.DOUBLE, True, """
        log.cleaner.io.buffer.load.factor 0.9
        log.cleaner.io.max.bytes.per.second 1.7976931348623157E308
        sasl.kerberos.ticket.renew.jitter 0.05
        sasl.kerberos.ticket.renew.window.factor 0.8
        sasl.login.refresh.window.factor 0.8
        sasl.login.refresh.window.jitter 0.05
    """),
    (Kind.LIST, False, """
        controller.listener.names
        controller.quorum.bootstrap.servers ""
        early.start.listeners
        group.share.assignors simple
        kafka.metrics.reporters ""
        log.dir /tmp/kafka-logs
        sasl.oauthbearer.expected.audience ""
    """),
    (Kind.LIST, True, """
        config.providers ""
        cordoned.log.dirs ""
        sasl.kerberos.principal.to.local.rules DEFAULT
        ssl.cipher.suites ""
        ssl.enabled.protocols TLSv1.2,TLSv1.3
    """),
    (Kind.CLASS, False, """
        alter.config.policy.class.name
        client.quota.callback.class
        create.topic.policy.class.name
        sasl.client.callback.handler.class
        sasl.login.callback.handler.class
        sasl.login.class
        sasl.oauthbearer.jwt.retriever.class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
        sasl.oauthbearer.jwt.validator.class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
        sasl.server.callback.handler.class
    """),
    (Kind.CLASS, True, """
        principal.builder.class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
        ssl.engine.factory.class
    """),
    (Kind.PASSWORD, False, """
        sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.client.credentials.client.secret
    """),
    (Kind.PASSWORD, True, """
        sasl.jaas.config
        ssl.key.password
        ssl.keystore.certificate.chain
        ssl.keystore.key
        ssl.keystore.password
        ssl.truststore.certificates
        ssl.truststore.password
    """),
)  # fmt: skip


def _options() -> dict[str, Option]:
    found = {}
    for kind, is_dynamic, lines in _TABLE:
        for line in lines.split("\n"):
            name, _, default = line.strip().partition(" ")
            if name:
                value = None if not default else "" if default == '""' else default
                found[name] = Option(name, kind, value, _DOC, is_dynamic=is_dynamic, has_effect=False)
    return found


_DOC: Final = "As in Kafka; the embedded broker has no use for it."
OPTIONS_WITHOUT_EFFECT: Final = _options()
