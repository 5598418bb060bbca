package tools

import (
	"context"
	"log/slog"
	"os/exec"
)

// browserPackages lists packages of Chromium. One of them is sufficient.
var browserPackages = []string{"chromium-headless-shell", "chromium"}

// EnsureBrowser returns the path of Chromium. If there is none, EnsureBrowser installs it into
// the system, because it needs too many shared libraries to run from a directory.
func EnsureBrowser(ctx context.Context, log *slog.Logger) (string, error) {
	needs := []requirement{{browserPackages[:1], func(context.Context) bool { _, err := findBrowser(); return err == nil }}}
	if err := prepareHost(ctx, log, needs); err != nil {
		return "", err
	}
	return findBrowser()
}

func findBrowser() (path string, err error) {
	for _, name := range browserPackages {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}
