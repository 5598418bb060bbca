package source

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of checks per property, because many properties wait for a real
// directory. If the command line sets this number, TestMain does not change it.
func TestMain(m *testing.M) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("25"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
