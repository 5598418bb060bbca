package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// run runs a program in dir, with env added to the environment, and returns its standard output.
// If the program fails, the error contains the end of its output.
func run(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", strings.Join(cmd.Args, " "), err, tail(stderr.String()+stdout.String(), 2000))
	}
	return stdout.Bytes(), nil
}

// tail returns the end of s, where programs report errors.
func tail(s string, maxBytes int) string {
	s = strings.TrimSpace(s)
	if len(s) <= maxBytes {
		return s
	}
	return "…" + s[len(s)-maxBytes:]
}
