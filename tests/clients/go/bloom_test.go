// Package bloom tests go-redis against a server with the commands BF.*.
//
// EVERBLOOM_PORT names the port on 127.0.0.1; `cargo test` starts the server and sets it. Every test
// works in database 11, which is emptied before each.
package bloom

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// eachProtocol runs a test over RESP2 and over RESP3, each on an empty database.
func eachProtocol(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			client := redis.NewClient(&redis.Options{
				Addr:     "127.0.0.1:" + os.Getenv("EVERBLOOM_PORT"),
				DB:       11,
				Protocol: protocol,
			})
			t.Cleanup(func() { client.Close() })
			if err := client.FlushDB(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			test(t, client)
		})
	}
}

// answer is what all commands of go-redis have: a value or an error.
type answer[T any] interface{ Result() (T, error) }

func expect[T any](t *testing.T, got answer[T], want T) {
	t.Helper()
	value, err := got.Result()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(value, want) {
		t.Fatalf("got %v, want %v", value, want)
	}
}

func expectError(t *testing.T, got redis.Cmder, want string) {
	t.Helper()
	if err := got.Err(); err == nil || err.Error() != want {
		t.Fatalf("got the error %v, want %q", err, want)
	}
}

// items are as many different items, in the type that go-redis takes.
func items(count int) []any {
	items := make([]any, count)
	for n := range items {
		items[n] = fmt.Sprintf("item:%d", n)
	}
	return items
}

func TestReserveThenInfo(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.BFReserve(ctx, "k", 0.001, 1000), "OK")
		expect(t, client.BFInfo(ctx, "k"), redis.BFInfo{
			Capacity: 1000, Size: 2080, Filters: 1, ItemsInserted: 0, ExpansionRate: 2,
		})
		expect(t, client.BFReserveExpansion(ctx, "wide", 0.01, 100, 4), "OK")
		expect(t, client.BFInfo(ctx, "wide"), redis.BFInfo{
			Capacity: 100, Size: 240, Filters: 1, ItemsInserted: 0, ExpansionRate: 4,
		})
		options := &redis.BFReserveOptions{Capacity: 100, Error: 0.01, Expansion: 4}
		expect(t, client.BFReserveWithArgs(ctx, "options", options), "OK")
		expect(t, client.BFInfo(ctx, "options"), client.BFInfo(ctx, "wide").Val())
		expectError(t, client.BFReserve(ctx, "k", 0.001, 1000), "ERR item exists")
		expectError(t, client.BFInfo(ctx, "absent"), "ERR not found")
	})
}

func TestEachFieldOfInfo(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.BFReserve(ctx, "k", 0.001, 1000), "OK")
		expect(t, client.BFAdd(ctx, "k", "a"), true)
		expect(t, client.BFInfoCapacity(ctx, "k"), redis.BFInfo{Capacity: 1000})
		expect(t, client.BFInfoSize(ctx, "k"), redis.BFInfo{Size: 2080})
		expect(t, client.BFInfoFilters(ctx, "k"), redis.BFInfo{Filters: 1})
		expect(t, client.BFInfoItems(ctx, "k"), redis.BFInfo{ItemsInserted: 1})
		expect(t, client.BFInfoExpansion(ctx, "k"), redis.BFInfo{ExpansionRate: 2})
	})
}

func TestAFilterThatDoesNotScale(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.BFReserveNonScaling(ctx, "k", 0.001, 3), "OK")
		options := &redis.BFReserveOptions{Capacity: 1000, Error: 0.001, NonScaling: true}
		expect(t, client.BFReserveWithArgs(ctx, "options", options), "OK")
		expect(t, client.BFInfoSize(ctx, "options"), redis.BFInfo{Size: 1896})
		// It has no expansion rate, and go-redis has no BFInfo without one.
		expectError(t, client.BFInfo(ctx, "options"), redis.Nil.Error())
		expect(t, client.Ping(ctx), "PONG")

		expect(t, client.BFMAdd(ctx, "k", "a", "b", "c"), []bool{true, true, true})
		expectError(t, client.BFAdd(ctx, "k", "d"), "ERR non scaling filter is full")
	})
}

func TestAddAndExists(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.BFAdd(ctx, "k", "foo"), true)
		expect(t, client.BFAdd(ctx, "k", "foo"), false)
		expect(t, client.BFExists(ctx, "k", "foo"), true)
		expect(t, client.BFExists(ctx, "k", "bar"), false)
		expect(t, client.BFExists(ctx, "absent", "foo"), false)
		expect(t, client.BFAdd(ctx, "k", 7), true)
		expect(t, client.BFExists(ctx, "k", "7"), true)
		expect(t, client.BFAdd(ctx, "k", []byte{0, 255}), true)
		expect(t, client.BFExists(ctx, "k", "\x00\xff"), true)
	})
}

func TestManyAtOnce(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.BFMAdd(ctx, "k", "a", "b", "a"), []bool{true, true, false})
		expect(t, client.BFMExists(ctx, "k", "a", "b", "c"), []bool{true, true, false})
		expect(t, client.BFMExists(ctx, "absent", "a", "b"), []bool{false, false})
		expect(t, client.BFCard(ctx, "k"), 2)
		expect(t, client.BFCard(ctx, "absent"), 0)
	})
}

func TestInsert(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		options := &redis.BFInsertOptions{Capacity: 1000, Error: 0.001, Expansion: 4}
		expect(t, client.BFInsert(ctx, "k", options, "a", "b"), []bool{true, true})
		expect(t, client.BFInfo(ctx, "k"), redis.BFInfo{
			Capacity: 1000, Size: 2080, Filters: 1, ItemsInserted: 2, ExpansionRate: 4,
		})
		existing := &redis.BFInsertOptions{NoCreate: true}
		expect(t, client.BFInsert(ctx, "k", existing, "b", "c"), []bool{false, true})
		expectError(t, client.BFInsert(ctx, "absent", existing, "a"), "ERR not found")
		fixed := &redis.BFInsertOptions{NonScaling: true}
		expect(t, client.BFInsert(ctx, "fixed", fixed, "a"), []bool{true})
	})
}

func TestAFilterMovesInChunks(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		items := items(500)
		if err := client.BFMAdd(ctx, "from", items...).Err(); err != nil {
			t.Fatal(err)
		}
		for iterator := int64(0); ; {
			chunk, err := client.BFScanDump(ctx, "from", iterator).Result()
			if err != nil {
				t.Fatal(err)
			}
			if iterator = chunk.Iter; iterator == 0 {
				break
			}
			expect(t, client.BFLoadChunk(ctx, "to", iterator, chunk.Data), "OK")
		}
		expect(t, client.BFInfo(ctx, "to"), client.BFInfo(ctx, "from").Val())
		expect(t, client.BFMExists(ctx, "to", items...), client.BFMExists(ctx, "from", items...).Val())
		expect(t, client.Dump(ctx, "to"), client.Dump(ctx, "from").Val())
		expectError(t, client.BFLoadChunk(ctx, "new", 1, "nonsense"), "ERR received bad data")
	})
}

func TestAPipeline(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		items := items(1000)
		added := make([]*redis.BoolCmd, len(items))
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for n, item := range items {
				added[n] = pipe.BFAdd(ctx, "k", item)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		count := int64(0)
		for _, isNew := range added {
			if isNew.Val() {
				count++
			}
		}
		expect(t, client.BFCard(ctx, "k"), count)

		found, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, item := range items {
				pipe.BFExists(ctx, "k", item)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for n, answer := range found {
			if !answer.(*redis.BoolCmd).Val() {
				t.Fatalf("%v is missed", items[n])
			}
		}
	})
}

func TestAPipelineReportsEachError(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		answers, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.BFAdd(ctx, "k", "a")
			pipe.BFReserve(ctx, "k", 0.01, 100)
			pipe.BFCard(ctx, "k")
			return nil
		})
		if err == nil || len(answers) != 3 {
			t.Fatalf("%v, %v", answers, err)
		}
		expect(t, answers[0].(*redis.BoolCmd), true)
		expectError(t, answers[1], "ERR item exists")
		expect(t, answers[2].(*redis.IntCmd), 1)
	})
}

func TestATransaction(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		answers, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.BFMAdd(ctx, "k", "a", "b")
			pipe.BFCard(ctx, "k")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, answers[0].(*redis.BoolSliceCmd), []bool{true, true})
		expect(t, answers[1].(*redis.IntCmd), 2)
	})
}

func TestAnotherTypeIsRefused(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		wrongType := "WRONGTYPE Operation against a key holding the wrong kind of value"
		expect(t, client.Set(ctx, "text", "x", 0), "OK")
		expectError(t, client.BFAdd(ctx, "text", "a"), wrongType)
		expect(t, client.BFAdd(ctx, "k", "a"), true)
		expectError(t, client.Get(ctx, "k"), wrongType)
		expect(t, client.Type(ctx, "k"), "MBbloom--")
	})
}
