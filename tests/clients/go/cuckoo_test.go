package bloom

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestCuckooReserveThenInfo(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.CFReserve(ctx, "k", 1000), "OK")
		expect(t, client.CFInfo(ctx, "k"), redis.CFInfo{
			Size: 1080, NumBuckets: 512, NumFilters: 1, BucketSize: 2, ExpansionRate: 1,
			MaxIteration: 20,
		})
		options := &redis.CFReserveOptions{
			Capacity: 1000, BucketSize: 8, MaxIterations: 7, Expansion: 3,
		}
		expect(t, client.CFReserveWithArgs(ctx, "all", options), "OK")
		expect(t, client.CFInfo(ctx, "all"), redis.CFInfo{
			Size: 1080, NumBuckets: 128, NumFilters: 1, BucketSize: 8, ExpansionRate: 4,
			MaxIteration: 7,
		})
		expect(t, client.CFReserveExpansion(ctx, "wide", 1000, 2), "OK")
		expect(t, client.CFReserveBucketSize(ctx, "bucket", 1000, 4), "OK")
		expect(t, client.CFReserveMaxIterations(ctx, "iterations", 1000, 10), "OK")
		expectError(t, client.CFReserve(ctx, "k", 1000), "ERR item exists")
		expectError(t, client.CFInfo(ctx, "absent"), "ERR not found")
	})
}

func TestCuckooAddCountAndDelete(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		expect(t, client.CFAdd(ctx, "k", "a"), true)
		expect(t, client.CFAdd(ctx, "k", "a"), true)
		expect(t, client.CFAddNX(ctx, "k", "a"), false)
		expect(t, client.CFAddNX(ctx, "k", "b"), true)
		expect(t, client.CFCount(ctx, "k", "a"), 2)
		expect(t, client.CFExists(ctx, "k", "c"), false)
		expect(t, client.CFMExists(ctx, "k", "a", "c", "b"), []bool{true, false, true})
		expect(t, client.CFDel(ctx, "k", "a"), true)
		expect(t, client.CFDel(ctx, "k", "a"), true)
		expect(t, client.CFDel(ctx, "k", "a"), false)
		expect(t, client.CFExists(ctx, "k", "a"), false)
		expect(t, client.CFExists(ctx, "absent", "a"), false)
		expectError(t, client.CFDel(ctx, "absent", "a"), "Not found")
	})
}

func TestCuckooInsert(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		options := &redis.CFInsertOptions{Capacity: 1000}
		expect(t, client.CFInsert(ctx, "k", options, "a", "a"), []bool{true, true})
		expect(t, client.CFInsertNX(ctx, "k", options, "a", "b"), []int64{0, 1})
		info := client.CFInfo(ctx, "k").Val()
		if info.NumBuckets != 512 || info.NumItemsInserted != 3 {
			t.Fatalf("%+v", info)
		}
		existing := &redis.CFInsertOptions{NoCreate: true}
		expectError(t, client.CFInsert(ctx, "absent", existing, "a"), "ERR not found")
	})
}

func TestACuckooFilterMovesInChunks(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		items := items(500)
		expect(t, client.CFReserve(ctx, "from", 100), "OK")
		if err := client.CFInsert(ctx, "from", nil, items...).Err(); err != nil {
			t.Fatal(err)
		}
		for iterator := int64(0); ; {
			chunk, err := client.CFScanDump(ctx, "from", iterator).Result()
			// go-redis takes the null behind the last piece for an error.
			if err == redis.Nil || err == nil && chunk.Iter == 0 {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			iterator = chunk.Iter
			expect(t, client.CFLoadChunk(ctx, "to", iterator, chunk.Data), "OK")
		}
		expect(t, client.CFInfo(ctx, "to"), client.CFInfo(ctx, "from").Val())
		expect(t, client.Dump(ctx, "to"), client.Dump(ctx, "from").Val())
		expectError(t, client.CFLoadChunk(ctx, "new", 1, "nonsense"), "Invalid header")
	})
}

func TestACuckooPipelineAndATransaction(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		items := items(1000)
		answers, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, item := range items {
				pipe.CFAdd(ctx, "k", item)
			}
			for _, item := range items {
				pipe.CFExists(ctx, "k", item)
			}
			for _, item := range items {
				pipe.CFDel(ctx, "k", item)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for n, answer := range answers {
			if !answer.(*redis.BoolCmd).Val() {
				t.Fatalf("request %d failed", n)
			}
		}
		answers, err = client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.CFAdd(ctx, "k", "a")
			pipe.CFCount(ctx, "k", "a")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, answers[1].(*redis.IntCmd), 1)
	})
}

func TestBloomAndCuckooAreDifferentTypes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client *redis.Client) {
		wrongType := "WRONGTYPE Operation against a key holding the wrong kind of value"
		expect(t, client.CFAdd(ctx, "k", "a"), true)
		expectError(t, client.BFAdd(ctx, "k", "a"), wrongType)
		expect(t, client.Type(ctx, "k"), "MBbloomCF")
	})
}
