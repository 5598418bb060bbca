// Command settings records the names of the kubelet's feature gates, including those that
// kubelet --help does not print because they can no longer be changed. See package controlplane
// for how to run it.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/kubernetes/cmd/kubelet/app" // registers the feature gates
)

const output = "../../cmd/podd/internal/config/feature_gates.txt"

func main() {
	var names []string
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	if err := os.WriteFile(output, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(len(names), "feature gates,", output)
}
