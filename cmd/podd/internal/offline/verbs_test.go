package offline

import (
	"bytes"
	"strings"
	"testing"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
)

// podd runs the verb words[0], which must be volume, while f is the running podd.
func podd(t *testing.T, f *poddtest.Podd, words ...string) poddtest.Result {
	t.Helper()
	var grammar struct {
		Volume VolumeCmd `cmd:""`
	}
	var out, errs bytes.Buffer
	s := iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	code := poddtest.Execute(t.Context(), &grammar, s, append([]string{words[0], "--run-dir", f.Dir}, words[1:]...)...)
	return poddtest.Result{Out: out.String(), Err: errs.String(), Code: code}
}
