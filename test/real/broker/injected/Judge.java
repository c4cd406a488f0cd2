import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own client as users see it: the commands of judge_faults.py, one line of answer for each. */
public class Judge {
    static final Duration TIMEOUT = Duration.ofSeconds(20);
    static Map<String, Object> common = new HashMap<>();

    public static void main(String[] args) throws Exception {
        common.putAll(Map.of("bootstrap.servers", args[0], "retry.backoff.ms", "10", "retry.backoff.max.ms", "50",
            "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "50", "request.timeout.ms", "5000"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String told = "ok";
            try {
                run(words[0], words[1], words.length > 2 ? words[2] : "");
            } catch (Throwable error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                if (cause.getClass().getSimpleName().equals("KafkaException") && cause.getCause() != null) cause = cause.getCause();
                told = cause.getClass().getSimpleName();
            }
            System.out.println(told);
            System.out.flush();
        }
    }

    static void run(String what, String topic, String name) throws Exception {
        if (what.equals("produce") || what.equals("transact")) produce(topic, what.equals("transact") ? name : null);
        else consume(what, topic, name);
    }

    static void produce(String topic, String transactionalId) throws Exception {
        Map<String, Object> options = new HashMap<>(common);
        options.putAll(Map.of("max.block.ms", "20000", "delivery.timeout.ms", "20000"));
        if (transactionalId != null) options.put("transactional.id", transactionalId);
        var producer = new KafkaProducer<>(options, new StringSerializer(), new StringSerializer());
        try {
            if (transactionalId != null) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            var sent = producer.send(new ProducerRecord<>(topic, 0, null, "v"));
            if (transactionalId == null) sent.get();
            else producer.commitTransaction();
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    static void consume(String what, String topic, String name) {
        Map<String, Object> options = new HashMap<>(common);
        options.putAll(Map.of("auto.offset.reset", what.equals("join") ? "earliest" : "none", "default.api.timeout.ms", "20000",
            "enable.auto.commit", "false", "fetch.max.wait.ms", "50", "group.id", name, "heartbeat.interval.ms", "100"));
        TopicPartition partition = new TopicPartition(topic, 0);
        var consumer = new KafkaConsumer<>(options, new StringDeserializer(), new StringDeserializer());
        try {
            switch (what) {
                case "commit" -> consumer.commitSync(Map.of(partition, new OffsetAndMetadata(1)));
                case "committed" -> consumer.committed(Set.of(partition));
                case "list" -> {
                    if (consumer.partitionsFor(topic).isEmpty()) throw new IllegalStateException("nothing");
                }
                default -> {
                    if (what.equals("begin")) {
                        consumer.assign(List.of(partition));
                        consumer.seekToBeginning(List.of(partition));
                    } else if (what.equals("consume")) {
                        consumer.assign(List.of(partition));
                        consumer.seek(partition, 0);
                    } else {
                        consumer.subscribe(List.of(topic));
                    }
                    long deadline = System.nanoTime() + TIMEOUT.toNanos(), until = Long.MAX_VALUE;
                    for (int found = 0; found < 3 || System.nanoTime() < until;) {
                        if (System.nanoTime() > deadline) throw new org.apache.kafka.common.errors.TimeoutException("no records");
                        found += consumer.poll(Duration.ofMillis(100)).count();
                        // Long enough for a heartbeat of a member, and for a fetch after the records.
                        if (found >= 3 && until == Long.MAX_VALUE) until = System.nanoTime() + (what.equals("join") ? 500_000_000L : 300_000_000L);
                    }
                }
            }
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }
}
