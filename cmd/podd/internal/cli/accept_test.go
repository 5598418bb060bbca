package cli

import (
	"slices"
	"strings"
	"testing"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/poddtest"
)

func TestAccept(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView())
	if got := podd(t, f, "accept", "node-name"); got.Code != 0 || got.Out != "" || got.Err != "podd: node \"a\" is now \"b\"\n" {
		t.Errorf("node-name: got %+v, want exit code 0 and the response of podd on stderr", got)
	}
	if want := []string{"accept node-name"}; !slices.Equal(f.Requests, want) {
		t.Errorf("got requests %q, want %q", f.Requests, want)
	}
	if got := podd(t, f, "accept", "empty"); got.Code != exit.Usage || !strings.Contains(got.Err, "podd accept empty SOURCE") {
		t.Errorf("empty without a source: got %+v, want a usage error that names SOURCE", got)
	}
	if got := podd(t, f, "accept", "node-name", "/m"); got.Code != exit.Usage || !strings.Contains(got.Err, "unexpected argument") {
		t.Errorf("node-name with a source: got %+v, want a usage error for the unexpected argument", got)
	}
	if got := podd(t, f, "accept", "anything"); got.Code != exit.Usage || !strings.Contains(got.Err, "node-name") {
		t.Errorf("unknown change: got %+v, want a usage error that lists the changes, such as node-name", got)
	}
}
