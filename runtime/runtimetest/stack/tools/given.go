package tools

import (
	"encoding/json"
	"fmt"
	"os"
)

// These environment variables contain the paths of JSON files, the first one that of a Set, the second
// one that of a NodeSuite. If they are set, Ensure and EnsureNodeSuite build nothing and need neither
// the checkout nor Go, because the programs were built on another host.
const (
	ToolSetFileEnv   = "PODD_STACK_TOOLS"
	NodeSuiteFileEnv = "PODD_NODE_SUITE_TOOLS"
)

// readGivenSet reads the Set in file. It returns an error if the Set does not have the requested
// flavor.
func readGivenSet(file string, flavor Flavor) (Set, error) {
	var s Set
	if err := readGiven(file, ToolSetFileEnv, &s); err != nil {
		return Set{}, err
	}
	if s.Flavor != flavor {
		return Set{}, fmt.Errorf("finding the programs of runtime %q: %s, which $%s names, lists the programs of %q", flavor, file, ToolSetFileEnv, s.Flavor)
	}
	return s, nil
}

// readGiven decodes a file, which the environment variable env names, into to.
func readGiven(file, env string, to any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the list of programs (from $%s): %w", env, err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("decoding the list of programs %s (from $%s): %w", file, env, err)
	}
	return nil
}
