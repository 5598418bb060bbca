package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A formerFlag is a line of testdata/former-kubelet-flags.txt: the name of the flag, "bool" or "value",
// and the last Kubernetes release with the flag, if that release is recorded.
type formerFlag struct {
	name   string
	isBool bool
}

// readFormerFlags returns the flags in testdata/former-kubelet-flags.txt.
func readFormerFlags(t *testing.T) (all []formerFlag) {
	t.Helper()
	text, err := os.ReadFile("testdata/former-kubelet-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != "bool" && fields[1] != "value" {
			t.Fatalf("former-kubelet-flags.txt: invalid line %q", line)
		}
		all = append(all, formerFlag{fields[0], fields[1] == "bool"})
	}
	return all
}

// sampleValue returns a value that podd accepts for a former flag that takes a value. If possible, the
// value contains "hunter2", which TestFormerFlags looks for in warnings.
func sampleValue(name string) string {
	switch name {
	case containerRuntime:
		return "remote"
	case "experimental-qos-reserved":
		return "" // podd rejects all other values
	case "experimental-allowed-unsafe-sysctls":
		return "net.hunter2"
	}
	return "hunter2"
}

// TestFormerFlags checks that podd accepts every flag that a kubelet since Kubernetes 1.3 had and the
// current kubelet does not have. podd must print one warning for the flag, without its value.
func TestFormerFlags(t *testing.T) {
	for _, f := range readFormerFlags(t) {
		args := []string{"--cgroup-root=/", "--" + f.name}
		if !f.isBool {
			args = append(args, sampleValue(f.name))
		}
		args = append(args, "--max-pods=7")
		for _, inCluster := range []bool{false, true} {
			if inCluster || f.name == "experimental-bootstrap-kubeconfig" { // its replacement needs --kubeconfig
				args = append(args, "--kubeconfig=kubelet.conf")
			}
			flags, err := tryParse(args...)
			if err != nil {
				t.Errorf("%q: %v", args, err)
				continue
			}
			got, warnings, err := Load(flags, testHost)
			if err != nil || got.MaxPods != 7 {
				t.Errorf("%q: got max pods %d, error %v; want 7 (of --max-pods) and no error", args, got.MaxPods, err)
			}
			var about []string
			for _, w := range warnings {
				if text := w.String(); strings.Contains(text, "--"+f.name+":") {
					about = append(about, text)
				}
			}
			if len(about) != 1 || strings.Contains(about[0], "hunter2") {
				t.Errorf("%q: got warnings %q for --%s, want one warning without the value", args, about, f.name)
			}
		}
	}
}

// TestFormerFlags_Tables checks that AllFormerFlags returns the flags in former-kubelet-flags.txt, each
// of them once.
func TestFormerFlags_Tables(t *testing.T) {
	var want, got []string
	for _, f := range readFormerFlags(t) {
		want = append(want, f.name)
	}
	for _, f := range AllFormerFlags() {
		got = append(got, f.Names...)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("flags of AllFormerFlags:\n got %q\nwant %q", got, want)
	}
}
