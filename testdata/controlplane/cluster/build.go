package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ControlPlane are the programs for Start, Controllers those for Control. Kubelet is the agent
// of a node, and Kubeadm sets up clusters. Conformance are the programs that run the
// conformance suite and that its images contain; see BuildConformance. NodeSuite are the programs
// that other images contain; see BuildNodeSuite.
var (
	ControlPlane     = []string{"etcd", "kube-apiserver"}
	Controllers      = []string{"kube-controller-manager", "kube-scheduler"}
	Kubelet, Kubeadm = "kubelet", "kubeadm"
	Conformance      = []string{"ginkgo", "agnhost", "curl", "nnp"}
	NodeSuite        = []string{"sample-device-plugin"}
)

// packages contains the package of each program.
var packages = map[string]string{
	"etcd":                    "go.etcd.io/etcd/server/v3",
	"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
	"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
	"kubelet":                 "k8s.io/kubernetes/cmd/kubelet",
	"kubeadm":                 "k8s.io/kubernetes/cmd/kubeadm",
	"agnhost":                 agnhost,
	"ginkgo":                  "github.com/onsi/ginkgo/v2/ginkgo",
	"curl":                    "podd/testdata/controlplane/image/curl",
	"nnp":                     "podd/testdata/controlplane/image/nnp",
	"sample-device-plugin":    "k8s.io/kubernetes/test/images/sample-device-plugin",
}

// versionFlags returns the linker flags for the version of Kubernetes in go.mod, as in a release.
// Without them, or with those of an earlier version, the programs behave like that version.
// kubeadm compares the versions of the programs with its own.
func versionFlags() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes in go.mod: %w", err)
	}
	version := strings.TrimSpace(string(out))
	minor := strings.Split(strings.TrimPrefix(version, "v1."), ".")[0]
	var flags []string
	for name, value := range map[string]string{"gitMajor": "1", "gitMinor": minor, "gitVersion": version, "gitTreeState": "clean"} {
		flags = append(flags, "-X k8s.io/component-base/version."+name+"="+value)
	}
	slices.Sort(flags)
	return strings.Join(flags, " "), nil
}

// Build builds those of the programs that do not exist in dir, statically linked. This takes
// minutes. The working directory must be in the module.
func Build(dir string, programs ...string) error {
	for _, name := range programs {
		from := packages[name]
		program := filepath.Join(dir, name)
		if _, err := os.Stat(program); err == nil {
			continue
		}
		version, err := versionFlags()
		if err != nil {
			return err
		}
		build := exec.Command("go", "build", "-ldflags", "-s -w "+version, "-o", program, from)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return nil
}
