package host

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"podd/cmd/podd/internal/config"
)

// sysctlDir is the directory of the kernel parameters.
const sysctlDir = "/proc/sys"

// kernelParameters contains the values that the kubelet requires. With these values, the kernel grants
// all requests for memory. When the host is out of memory, the kernel kills processes. After an oops or
// a panic of the kernel, the host restarts within 10 s.
var kernelParameters = []struct{ name, value string }{
	{"vm.overcommit_memory", "1"},
	{"vm.panic_on_oom", "0"},
	{"kernel.panic", "10"},
	{"kernel.panic_on_oops", "1"},
	{"kernel.keys.root_maxkeys", "1000000"},
	{"kernel.keys.root_maxbytes", "25000000"},
}

// ApplyKernelParameters checks or sets the kernel parameters of the kubelet, or does nothing. It logs
// the parameters that it changes.
func ApplyKernelParameters(policy config.KernelParameterPolicy, log *slog.Logger) error {
	return applyKernelParameters(sysctlDir, policy, log)
}

func applyKernelParameters(dir string, policy config.KernelParameterPolicy, log *slog.Logger) error {
	if policy == config.KeepKernelParameters {
		return nil
	}
	var errs []error
	for _, p := range kernelParameters {
		file := filepath.Join(dir, strings.ReplaceAll(p.name, ".", "/"))
		text, err := os.ReadFile(file)
		current := strings.TrimSpace(string(text))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("reading the kernel parameter %s: %w", p.name, err))
		case current == p.value:
		case policy == config.CheckKernelParameters:
			errs = append(errs, fmt.Errorf("kernel parameter %s is %s, but protectKernelDefaults requires %s; run: sysctl -w %s=%s", p.name, current, p.value, p.name, p.value))
		default:
			if err := os.WriteFile(file, []byte(p.value), 0); err != nil {
				errs = append(errs, fmt.Errorf("changing the kernel parameter %s from %s to %s: %w", p.name, current, p.value, err))
				continue
			}
			log.Info("kernel parameter changed, because protectKernelDefaults is false", "parameter", p.name, "previous", current, "current", p.value)
		}
	}
	return errors.Join(errs...)
}
