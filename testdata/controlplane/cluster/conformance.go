package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// suite is the package of the node conformance tests. agnhost is the package of the program in most
// of their images. nodeSuite is the package of the tests of a node agent.
const (
	suite     = "podd/testdata/controlplane/suite"
	agnhost   = "k8s.io/kubernetes/test/images/agnhost"
	nodeSuite = "k8s.io/kubernetes/test/e2e_node"
)

// BuildConformance builds the conformance suite of Kubernetes, e2e.test, and the programs in its
// images, and writes them to dir. It reuses most packages that Build has compiled, and runs no
// go vet.
func BuildConformance(dir string) error {
	if err := Build(dir, Conformance...); err != nil {
		return err
	}
	if err := buildTests(filepath.Join(dir, "e2e.test"), suite); err != nil {
		return err
	}
	agnhostDir, err := exec.Command("go", "list", "-f", "{{.Dir}}", agnhost).Output()
	if err != nil {
		return fmt.Errorf("finding %s: %w", agnhost, err)
	}
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(agnhostDir)), "porter", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// BuildNodeSuite builds the tests of a node agent, e2e_node.test, and sample-device-plugin, the
// program in one of their images, and writes them to dir. BuildConformance builds the programs in
// their other images and the program that runs the tests.
func BuildNodeSuite(dir string) error {
	if err := Build(dir, NodeSuite...); err != nil {
		return err
	}
	return buildTests(filepath.Join(dir, "e2e_node.test"), nodeSuite)
}

// buildTests builds the test program of a package, statically linked.
func buildTests(file, pkg string) error {
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags", "-s -w", "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", file, err, out)
	}
	return nil
}
