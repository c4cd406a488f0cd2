// franz-go: each capability in turn.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var servers, name = strings.Split(os.Args[1], ","), os.Args[2]

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(servers...))...)
	must(err)
	return made
}

func read(count int, group string, options ...kgo.Opt) map[string]bool {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	from := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	reader := client(append(options, kgo.ConsumerGroup(group), from, kgo.DisableAutoCommit())...)
	defer reader.Close()
	seen, number := map[string]bool{}, 0
	for number < count {
		fetches := reader.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { seen[record.Topic] = true; number++ })
	}
	must(reader.CommitUncommittedOffsets(ctx))
	return seen
}

func both(seen map[string]bool) {
	if len(seen) != 2 || !seen[name+"-a"] || !seen[name+"-b"] {
		log.Fatal("the pattern found ", seen)
	}
}

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			fmt.Println("version", strings.TrimPrefix(module.Version, "v"))
		}
	}
	ctx := context.Background()
	// KIP-848 needs one of two balancers.
	next := []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	pattern := []kgo.Opt{kgo.ConsumeRegex(), kgo.ConsumeTopics("^" + name + "-[ab]$")}
	topic := kgo.ConsumeTopics(name + "-a")
	steps := []struct {
		name string
		run  func()
	}{
		{"list_topics", func() {
			admin := client()
			defer admin.Close()
			topics, err := kadm.NewClient(admin).ListTopics(ctx)
			must(err)
			if !topics.Has(name+"-a") || !topics.Has(name+"-b") {
				log.Fatal(topics.Names())
			}
		}},
		{"produce", func() {
			producer := client()
			defer producer.Close()
			for number := range 100 {
				key := []byte(fmt.Sprint("k", number))
				producer.Produce(ctx, &kgo.Record{Topic: name + "-a", Key: key, Value: key}, nil)
			}
			must(producer.Flush(ctx))
			must(producer.ProduceSync(ctx, &kgo.Record{Topic: name + "-b", Value: []byte("v")}).FirstErr())
		}},
		{"pattern", func() { both(read(101, name+"-pattern", pattern...)) }},
		{"pattern_consumer", func() { both(read(101, name+"-pattern-consumer", append(next, pattern...)...)) }},
		{"classic", func() { read(100, name+"-classic", topic) }},
		{"consumer", func() { read(100, name+"-consumer", append(next, topic)...) }},
		{"transaction", func() {
			producer := client(kgo.TransactionalID(name+"-tid"))
			defer producer.Close()
			for _, value := range []string{"committed", "aborted"} {
				must(producer.BeginTransaction())
				must(producer.ProduceSync(ctx, &kgo.Record{Topic: name + "-tx", Value: []byte(value)}).FirstErr())
				must(producer.EndTransaction(ctx, kgo.TransactionEndTry(value == "committed")))
			}
		}},
	}
	for _, step := range steps {
		step.run()
		fmt.Println("can", step.name)
	}
}
