package tools

import (
	"encoding/json"
	"fmt"
	"os"
)

// ToolSetFileEnv is the environment variable with the path of a Set in JSON. If it is set, Ensure
// builds nothing and needs neither the checkout nor Go, because the programs were built on
// another host.
const ToolSetFileEnv = "PODD_STACK_TOOLS"

// readGivenSet reads the Set in file. It returns an error if the Set does not have the requested
// flavor.
func readGivenSet(file string, flavor Flavor) (Set, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Set{}, fmt.Errorf("reading the list of programs (from $%s): %w", ToolSetFileEnv, err)
	}
	var s Set
	if err := json.Unmarshal(data, &s); err != nil {
		return Set{}, fmt.Errorf("decoding the list of programs %s (from $%s): %w", file, ToolSetFileEnv, err)
	}
	if s.Flavor != flavor {
		return Set{}, fmt.Errorf("finding the programs of runtime %q: %s, which $%s names, lists the programs of %q", flavor, file, ToolSetFileEnv, s.Flavor)
	}
	return s, nil
}
