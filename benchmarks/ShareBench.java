import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Members of a share group for benchmarks/share.py: "work N" takes N records, "rounds N" sends and takes one, N times. */
public class ShareBench {
    private final List<KafkaShareConsumer<byte[], byte[]>> members = new ArrayList<>();

    private static int poll(KafkaShareConsumer<byte[], byte[]> member) {
        int seen = 0;
        for (ConsumerRecord<byte[], byte[]> record : member.poll(Duration.ofSeconds(1))) {
            member.acknowledge(record);
            seen++;
        }
        if (seen > 0)
            member.commitSync().values().forEach(error -> error.ifPresent(found -> { throw found; }));
        return seen;
    }

    private void work(long count) throws InterruptedException {
        AtomicLong left = new AtomicLong(count);
        List<Thread> threads = new ArrayList<>();
        for (var member : members)
            threads.add(new Thread(() -> { while (left.get() > 0) left.addAndGet(-poll(member)); }));
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
    }

    public static void main(String[] args) throws Exception {
        String group = args[1], topic = args[2];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            var option = new ConfigEntry("share.auto.offset.reset", "earliest");
            var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(option, AlterConfigOp.OpType.SET)))).all().get();
        }
        var bench = new ShareBench();
        Map<String, Object> options = Map.of("bootstrap.servers", args[0], "group.id", group, "share.acknowledgement.mode", "explicit");
        for (int number = 0; number < Integer.parseInt(args[3]); number++) {
            var member = new KafkaShareConsumer<>(options, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            member.subscribe(List.of(topic));
            bench.members.add(member);
        }
        var sending = Map.<String, Object>of("bootstrap.servers", args[0], "linger.ms", "0");
        var producer = new KafkaProducer<>(sending, new ByteArraySerializer(), new ByteArraySerializer());
        var lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("bench ready");
        for (String line = lines.readLine(); line != null && !line.equals("close"); line = lines.readLine()) {
            String[] words = line.split(" ");
            int count = Integer.parseInt(words[1]);
            var said = new StringBuilder("bench");
            if (words[0].equals("work")) bench.work(count);
            else for (int round = 0; round < count; round++) {
                long began = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, new byte[100]));
                while (poll(bench.members.get(0)) == 0);
                said.append(' ').append(System.nanoTime() - began);
            }
            System.out.println(said);
        }
        producer.close();
        bench.members.forEach(KafkaShareConsumer::close);
    }
}
