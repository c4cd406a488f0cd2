import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a share group: accepts records and prints their values, until none has come for a while. */
public class ShareWorker {
    public static void main(String[] args) {
        Map<String, Object> options = Map.of("bootstrap.servers", args[0], "group.id", args[1], "max.poll.records", "10");
        long idleMs = Long.parseLong(args[3]);
        try (var consumer = new KafkaShareConsumer<>(options, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[2]));
            long last = System.currentTimeMillis();
            while (System.currentTimeMillis() - last < idleMs) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println("record " + record.value() + " " + record.deliveryCount().orElse((short) -1));
                    last = System.currentTimeMillis();
                }
                consumer.commitSync().values().forEach(error -> error.ifPresent(found -> System.out.println("error " + found)));
            }
        }
    }
}
