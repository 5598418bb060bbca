package source

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of checks of the properties that wait for a real directory,
// unless the command line sets it.
func TestMain(m *testing.M) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("25"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
