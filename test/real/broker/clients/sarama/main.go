// sarama: each capability in turn. It has no subscription by pattern: a program matches the names itself.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

var servers, name = strings.Split(os.Args[1], ","), os.Args[2]

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.MaxVersion
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Producer.Return.Successes = true
	made.Producer.Idempotent = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Net.MaxOpenRequests = 1
	return made
}

type reader struct {
	left int
	seen map[string]bool
	done context.CancelFunc
	all  chan string
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
			r.all <- message.Topic
		case <-session.Context().Done():
			return nil
		}
	}
}

func read(count int, group string, topics ...string) map[string]bool {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	members, err := sarama.NewConsumerGroup(servers, group, config())
	must(err)
	r := &reader{all: make(chan string, count)}
	ended := make(chan error, 1)
	go func() { ended <- members.Consume(ctx, topics, r) }()
	seen := map[string]bool{}
	for number := 0; number < count; number++ {
		select {
		case topic := <-r.all:
			seen[topic] = true
		case <-ctx.Done():
			log.Fatal(number, " of ", count, " records came")
		}
	}
	cancel()
	must(<-ended)
	must(members.Close())
	return seen
}

func topics() []string {
	client, err := sarama.NewClient(servers, config())
	must(err)
	defer client.Close()
	found, err := client.Topics()
	must(err)
	return found
}

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/IBM/sarama" {
			fmt.Println("version", strings.TrimPrefix(module.Version, "v"))
		}
	}
	steps := []struct {
		name string
		run  func()
	}{
		{"list_topics", func() {
			if found := topics(); !slices.Contains(found, name+"-a") || !slices.Contains(found, name+"-b") {
				log.Fatal(found)
			}
		}},
		{"produce", func() {
			producer, err := sarama.NewSyncProducer(servers, config())
			must(err)
			defer producer.Close()
			for number := range 100 {
				key := sarama.StringEncoder(fmt.Sprint("k", number))
				_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: name + "-a", Key: key, Value: key})
				must(err)
			}
			_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: name + "-b", Value: sarama.StringEncoder("v")})
			must(err)
		}},
		{"pattern", func() {
			wanted := regexp.MustCompile("^" + name + "-[ab]$")
			matching := slices.DeleteFunc(topics(), func(topic string) bool { return !wanted.MatchString(topic) })
			if seen := read(101, name+"-pattern", matching...); len(seen) != 2 {
				log.Fatal(seen)
			}
		}},
		{"classic", func() { read(100, name+"-classic", name+"-a") }},
		{"transaction", func() {
			with := config()
			with.Producer.Transaction.ID = name + "-tid"
			producer, err := sarama.NewSyncProducer(servers, with)
			must(err)
			defer producer.Close()
			for _, value := range []string{"committed", "aborted"} {
				must(producer.BeginTxn())
				_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: name + "-tx", Value: sarama.StringEncoder(value)})
				must(err)
				if value == "committed" {
					must(producer.CommitTxn())
				} else {
					must(producer.AbortTxn())
				}
			}
		}},
	}
	for _, step := range steps {
		step.run()
		fmt.Println("can", step.name)
	}
}
