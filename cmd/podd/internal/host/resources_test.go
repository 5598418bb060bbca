package host

import (
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
)

// TestReadResources_CPUAffinity checks that the CPU capacity of the node does not depend on the CPUs on
// which podd may run. The test runs itself on a single CPU.
func TestReadResources_CPUAffinity(t *testing.T) {
	const variable = "PODD_TEST_PRINT_CPU_CAPACITY"
	if os.Getenv(variable) != "" {
		capacity, _, err := ReadResources(&config.Config{Paths: config.Paths{RootDir: "/"}})
		fmt.Printf("capacity %d, own CPUs %d, error %v\n", capacity.MilliCPU, goruntime.NumCPU(), err)
		return
	}
	goruntime.LockOSThread() // without unlocking: the thread ends with the test, because its affinity is changed
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("the test needs two CPUs")
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	var milliCPU, own int
	if n, _ := fmt.Sscanf(string(out), "capacity %d, own CPUs %d", &milliCPU, &own); n != 2 || own != 1 || !strings.Contains(string(out), "error <nil>") {
		t.Fatalf("reading the resources on one CPU: got error %v, output %s", err, out)
	}
	if milliCPU < 1000*all.Count() {
		t.Errorf("on one of %d CPUs: got the CPU capacity %dm, want at least %dm", all.Count(), milliCPU, 1000*all.Count())
	}
}
