package tools

import (
	"encoding/json"
	"fmt"
	"os"
)

// SetFileEnv is the environment variable with the path of a Set in JSON. If it is set, Ensure
// builds nothing and needs neither the checkout nor Go, because the programs were built on
// another host.
const SetFileEnv = "PODD_STACK_TOOLS"

// readGivenSet reads the Set in file. It returns an error if the Set does not have the requested
// flavor.
func readGivenSet(file string, flavor Flavor) (Set, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Set{}, fmt.Errorf("reading the file in $%s: %w", SetFileEnv, err)
	}
	var s Set
	if err := json.Unmarshal(data, &s); err != nil {
		return Set{}, fmt.Errorf("decoding %s in $%s: %w", file, SetFileEnv, err)
	}
	if s.Flavor != flavor {
		return Set{}, fmt.Errorf("finding the programs of runtime %q: %s in $%s has the programs of %q", flavor, file, SetFileEnv, s.Flavor)
	}
	return s, nil
}
