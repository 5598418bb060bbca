// Package golden compares the results of tests with golden files. The test flag -update
// rewrites these files. The package imports no other package of podd, so that the tests of
// every package can use it.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// IsUpdate reports whether the test runs with -update. In that case, a test that cannot use Compare
// must rewrite its golden file and compare nothing. A test cannot use Compare if its golden file
// contains more than one result.
func IsUpdate() bool { return *update }

// Compare reports an error if got differs from the content of file. With -update, it first
// writes got to file.
func Compare(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update rewrites the file):\n%s", file, diff)
	}
}
