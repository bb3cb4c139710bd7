package bloom

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// TestRueidis connects as docs/guide/clients.md says. Where client-side caching, its default, is
// missing, the error names what to do.
func TestRueidis(t *testing.T) {
	option := rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:" + os.Getenv("EVERBLOOM_PORT")},
		SelectDB:    11,
	}
	if cached, err := rueidis.NewClient(option); err == nil {
		// The module's host has client-side caching.
		cached.Close()
	} else if !strings.Contains(err.Error(), "Switch client-side caching off") {
		t.Fatalf("with client-side caching: %v", err)
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Do(ctx, client.B().Flushdb().Build()).Error(); err != nil {
		t.Fatal(err)
	}
	add := client.B().BfMadd().Key("k").Item("a", "b", "a").Build()
	added, err := client.Do(ctx, add).AsBoolSlice()
	if err != nil || len(added) != 3 || !added[0] || !added[1] || added[2] {
		t.Fatalf("BF.MADD: %v, %v", added, err)
	}
}
