package tools

import (
	"encoding/json"
	"fmt"
	"os"
)

// GivenEnv is the environment variable with the path of a Set in JSON. If it is set, Ensure
// builds nothing and needs neither the checkout nor Go, because the programs were built on
// another host.
const GivenEnv = "PODD_STACK_TOOLS"

// given reads the Set in file, which must have the requested flavor.
func given(file string, flavor Flavor) (Set, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Set{}, fmt.Errorf("reading the programs that $%s names: %w", GivenEnv, err)
	}
	var s Set
	if err := json.Unmarshal(data, &s); err != nil {
		return Set{}, fmt.Errorf("decoding %s, which $%s names: %w", file, GivenEnv, err)
	}
	if s.Flavor != flavor {
		return Set{}, fmt.Errorf("finding the programs of runtime %q: %s, which $%s names, has those of %q", flavor, file, GivenEnv, s.Flavor)
	}
	return s, nil
}
