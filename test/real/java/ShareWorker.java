import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group: accepts records and prints their values and delivery counts, until a line is written to it.
 * Every tenth record it releases at its first delivery.
 */
public class ShareWorker {
    public static void main(String[] args) throws java.io.IOException {
        Map<String, Object> options = Map.of("bootstrap.servers", args[0], "group.id", args[1], "max.poll.records", "10",
            "share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<>(options, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[2]));
            while (System.in.available() == 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    short count = record.deliveryCount().orElse((short) -1);
                    boolean again = count == 1 && Integer.parseInt(record.value()) % 10 == 0;
                    consumer.acknowledge(record, again ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!again) System.out.println("record " + record.value() + " " + count);
                }
                consumer.commitSync().values().forEach(error -> error.ifPresent(found -> System.out.println("error " + found)));
            }
        }
    }
}
