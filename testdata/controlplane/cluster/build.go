package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ControlPlane contains the programs that Start runs, and Controllers the programs that
// StartControllers runs. Kubelet is the agent of a node, and Kubeadm sets up clusters. Conformance
// contains the program that runs the conformance suite and the programs in its images; see
// BuildConformance. NodeSuite contains the programs in the other images of the node suite; see
// BuildNodeSuite.
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

// versionFlags returns the linker flags that set the version of Kubernetes in the module's go.mod, as
// in a release. The flags are necessary because the programs behave like the version in the flags, and
// because kubeadm compares the versions of the programs with its own.
func versionFlags(module string) (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	list.Dir = module
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes in %s/go.mod: %w", module, err)
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

// Build builds the programs into dir, statically linked. It skips programs that exist in dir.
// Building takes minutes. The working directory must be that of the module.
func Build(dir string, programs ...string) error { return build(".", dir, programs) }

// BuildOldest builds the programs that Start and StartControllers run, as Build does. The programs of
// Kubernetes have the version in the module oldest.
func BuildOldest(dir string) error {
	return errors.Join(Build(dir, "etcd"), build("oldest", dir, slices.Concat([]string{"kube-apiserver"}, Controllers)))
}

// build builds programs of the module in the directory called module. See Build.
func build(module, dir string, programs []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, name := range programs {
		from := packages[name]
		program := filepath.Join(dir, name)
		if _, err := os.Stat(program); err == nil {
			continue
		}
		version, err := versionFlags(module)
		if err != nil {
			return err
		}
		build := exec.Command("go", "build", "-ldflags", "-s -w "+version, "-o", program, from)
		build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return nil
}
