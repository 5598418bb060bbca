package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/runtime"
)

// TestReadHostIDs checks the IDs for pods with user namespaces, and the errors, for the output of a
// script in the place of getsubids. Each script prints other group IDs than user IDs only if it uses $1,
// which is -g for group IDs.
func TestReadHostIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		script    string // "" if getsubids is not installed
		noUser    bool
		userErr   error
		idsPerPod uint32
		maxPods   int
		want      runtime.IDRange
		err       string // part of the error; "" if there is none
	}{
		"not installed":           {},
		"no user":                 {script: "exit 1", noUser: true},
		"user lookup fails":       {script: "exit 1", userErr: errors.New("no such file"), err: "no such file"},
		"one range":               {script: "echo 0: kubelet 131072 13107200", maxPods: 110, want: runtime.IDRange{First: 131072, Length: 13107200}},
		"more IDs per pod":        {script: "echo 0: kubelet 196608 1966080", idsPerPod: 196608, maxPods: 10, want: runtime.IDRange{First: 196608, Length: 1966080}},
		"all IDs":                 {script: "echo 0: kubelet 65536 4294901760", maxPods: 110, want: runtime.IDRange{First: 65536, Length: 4294901760}},
		"no ranges":               {script: "echo Error fetching ranges >&2; exit 1", err: "exit status 1: Error fetching ranges; correct the entries of kubelet in /etc/subuid and /etc/subgid"},
		"no group IDs":            {script: `[ "$1" != -g ] || exit 1; echo 0: kubelet 65536 65536`, err: "reading the subordinate group IDs of pods: "},
		"other group IDs":         {script: `[ "$1" = -g ] && echo 0: kubelet 65536 131072 || echo 0: kubelet 65536 65536`, err: "differ from the group IDs"},
		"two ranges":              {script: "echo 0: kubelet 65536 65536; echo 1: kubelet 196608 65536", err: "the user has 2 ranges of IDs, but must have one"},
		"empty output":            {script: "true", err: "unknown output of getsubids"},
		"first ID no number":      {script: "echo 0: kubelet x 65536", err: "first ID: "},
		"number of IDs too large": {script: "echo 0: kubelet 65536 4294967296", err: "number of IDs: "},
		"first ID 0":              {script: "echo 0: kubelet 0 65536", err: "the first ID 0 is not a positive multiple of 65536"},
		"first ID no multiple":    {script: "echo 0: kubelet 100000 65536", err: "the first ID 100000 is not a positive multiple of 65536"},
		"number no multiple":      {script: "echo 0: kubelet 65536 100000", err: "the number of IDs, 100000, is not a multiple of 65536"},
		"too few for maxPods":     {script: "echo 0: kubelet 65536 655360", maxPods: 11, err: "655360 IDs are enough for only 10 pods, but maxPods is 11"},
		"beyond the last ID":      {script: "echo 0: kubelet 131072 4294901760", err: "the IDs end at 4295032831, but the highest ID is 4294967295"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if tt.script != "" {
				if err := os.WriteFile(filepath.Join(dir, "getsubids"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cfg := &config.Config{Node: config.Node{MaxPods: tt.maxPods}, Runtime: config.Runtime{IDsPerPod: max(tt.idsPerPod, runtime.DefaultIDsPerPod)}}
			got, err := readHostIDs(t.Context(), cfg, func(_ context.Context, name string) (bool, error) {
				return name == "kubelet" && !tt.noUser && tt.userErr == nil, tt.userErr
			})
			if got != tt.want {
				t.Errorf("got IDs %+v, want %+v", got, tt.want)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want one that contains %q", err, tt.err)
			}
		})
	}
}

// TestUserExists checks the users in /etc/passwd and the users that only getent finds.
func TestUserExists(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	check := func(condition, name string, want bool, wantErr string) {
		t.Helper()
		got, err := userExists(t.Context(), name)
		if got != want || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s, user %s: got %t, error %v; want %t, error %q", condition, name, got, err, want, wantErr)
		}
	}
	const unknown = "podd-test-unknown"
	check("without getent", "root", true, "")
	check("without getent", unknown, false, "")
	getent := func(script string) {
		if err := os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	getent(`[ "$1 $2" = "passwd ` + unknown + `" ] || exit 2`)
	check("user in another database", unknown, true, "")
	check("user in another database", unknown+"2", false, "")
	getent("echo no server >&2; exit 1")
	check("getent fails", unknown, false, "exit status 1: no server")
}
