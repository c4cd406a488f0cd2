import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** A plugin of a broker: writes each push of a client (KIP-714), unpacked, to a file NUMBER-CLIENT_ID-TERMINATING. */
public class MetricsToFiles implements MetricsReporter, ClientTelemetry {
    private final AtomicInteger count = new AtomicInteger();

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> {
            ByteBuffer data = payload.data().duplicate();
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            String name = String.format("%06d-%s-%s", count.incrementAndGet(), context.clientId(), payload.isTerminating());
            Path directory = Path.of(System.getProperty("purekafka.pushes"));
            try {
                Path partial = Files.write(directory.resolve("." + name), bytes);
                Files.move(partial, directory.resolve(name));
            } catch (IOException error) {
                throw new RuntimeException(error);
            }
        };
    }

    @Override
    public void configure(Map<String, ?> configs) { }

    @Override
    public void init(List<KafkaMetric> metrics) { }

    @Override
    public void metricChange(KafkaMetric metric) { }

    @Override
    public void metricRemoval(KafkaMetric metric) { }

    @Override
    public void close() { }
}
