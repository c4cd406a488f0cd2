import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors as a judge: a group as JSON per line on stdin, the assignment as JSON per line on stdout
 * (between what the assignors log).
 *
 * <pre>
 * {"assignor": "range", "racks": ["r0", null], "topics": {"t": [[0, 1], [1]]},
 *  "members": {"m": {"topics": ["t"], "rack": "r0", "instance": "i", "generation": 3, "owned": [["t", 0]], "data": ""}}}
 * answer TAB {"m": [["t", 0], ["t", 1]]}
 * </pre>
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println("answer\t" + JSON.writeValueAsString(assign(JSON.readTree(line))));
            out.flush();
        }
    }

    private static ObjectNode assign(JsonNode group) {
        Map<String, Subscription> members = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> members.put(entry.getKey(), subscription(entry.getValue())));
        ObjectNode answer = JSON.createObjectNode();
        assignor(group.get("assignor").asText())
            .assign(cluster(group), new GroupSubscription(members))
            .groupAssignment()
            .forEach((member, assignment) -> {
                ArrayNode partitions = answer.putArray(member);
                for (TopicPartition partition : assignment.partitions()) {
                    partitions.addArray().add(partition.topic()).add(partition.partition());
                }
            });
        return answer;
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.get("owned").forEach(pair -> owned.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        byte[] data = Base64.getDecoder().decode(member.get("data").asText());
        Subscription subscription = new Subscription(
            topics,
            data.length == 0 ? null : ByteBuffer.wrap(data),
            owned,
            member.get("generation").asInt(),
            Optional.ofNullable(text(member.get("rack")))
        );
        subscription.setGroupInstanceId(Optional.ofNullable(text(member.get("instance"))));
        return subscription;
    }

    private static Cluster cluster(JsonNode group) {
        List<Node> nodes = new ArrayList<>();
        group.get("racks").forEach(rack -> nodes.add(new Node(nodes.size(), "b", 9092 + nodes.size(), text(rack))));
        List<PartitionInfo> partitions = new ArrayList<>();
        group.get("topics").fields().forEachRemaining(entry -> {
            int number = 0;
            for (JsonNode replicas : entry.getValue()) {
                Node[] copies = new Node[replicas.size()];
                for (int i = 0; i < copies.length; i++) {
                    copies[i] = nodes.get(replicas.get(i).asInt());
                }
                partitions.add(new PartitionInfo(entry.getKey(), number++, copies[0], copies, copies));
            }
        });
        return new Cluster("c", nodes, partitions, Set.of(), Set.of());
    }

    private static String text(JsonNode value) {
        return value == null || value.isNull() ? null : value.asText();
    }
}
