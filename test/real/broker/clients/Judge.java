import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Kafka's own client for Java: each capability in turn. */
public final class Judge {
    private static String servers;
    private static String name;

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> made = new HashMap<>();
        made.put("bootstrap.servers", servers);
        for (int at = 0; at < pairs.length; at += 2) {
            made.put((String) pairs[at], pairs[at + 1]);
        }
        return made;
    }

    private static KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    private static Set<String> read(
            int count, String group, String protocol, Consumer<KafkaConsumer<String, String>> subscribe) {
        Set<String> seen = new TreeSet<>();
        int number = 0;
        long deadline = System.nanoTime() + Duration.ofSeconds(40).toNanos();
        Map<String, Object> config =
                config("group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest",
                        "enable.auto.commit", false);
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, text, text)) {
            subscribe.accept(consumer);
            while (number < count) {
                check(System.nanoTime() < deadline, number + " of " + count + " records came");
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    seen.add(record.topic());
                    number++;
                }
            }
            consumer.commitSync();
        }
        return seen;
    }

    private static void check(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void can(String step) {
        System.out.println("can " + step);
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        name = args[1];
        Set<String> both = Set.of(name + "-a", name + "-b");
        String expression = "^" + name + "-[ab]$";
        System.out.println("version " + AppInfoParser.getVersion());
        try (Admin admin = Admin.create(config())) {
            Set<String> topics = admin.listTopics().names().get();
            check(topics.containsAll(both), topics);
        }
        can("list_topics");
        try (var producer = producer()) {
            for (int number = 0; number < 100; number++) {
                producer.send(new ProducerRecord<>(name + "-a", "k" + number, "v" + number));
            }
            producer.send(new ProducerRecord<>(name + "-b", "v")).get();
            producer.flush();
        }
        can("produce");
        Set<String> seen = read(101, name + "-pattern", "classic", c -> c.subscribe(Pattern.compile(expression)));
        check(seen.equals(both), seen);
        can("pattern");
        seen = read(101, name + "-pattern-consumer", "consumer", c -> c.subscribe(new SubscriptionPattern(expression)));
        check(seen.equals(both), seen);
        can("pattern_consumer");
        read(100, name + "-classic", "classic", c -> c.subscribe(List.of(name + "-a")));
        can("classic");
        read(100, name + "-consumer", "consumer", c -> c.subscribe(List.of(name + "-a")));
        can("consumer");
        try (var producer = producer("transactional.id", name + "-tid")) {
            producer.initTransactions();
            for (String value : List.of("committed", "aborted")) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(name + "-tx", value)).get();
                if (value.equals("committed")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        can("transaction");
    }
}
