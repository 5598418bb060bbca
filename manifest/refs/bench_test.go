package refs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

// BenchmarkResolveSet resolves n pods, each with its own claim, and n volumes.
func BenchmarkResolveSet(b *testing.B) {
	for _, n := range []int{100, 200} {
		var text strings.Builder
		for i := range n {
			claim := fmt.Sprintf("c%d", i)
			text.WriteString(strings.Replace(strings.Replace(manifesttest.PodWithClaim, "name: web", "name: "+claim, 1), "claimName: a", "claimName: "+claim, 1))
			text.WriteString(manifesttest.Claim(claim, "") + manifesttest.Volume(fmt.Sprintf("v%d", i), manifesttest.SmallCapacity))
		}
		set := merge.Batches([]manifest.Batch{manifesttest.Batch(manifest.KindFile, "x", text.String())})
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				if bound := refs.ResolveSet(set, "salt", nil, nil); len(bound.Refs) != n {
					b.Fatalf("got %d resolved pods, want one per pod", len(bound.Refs))
				}
			}
		})
	}
}
