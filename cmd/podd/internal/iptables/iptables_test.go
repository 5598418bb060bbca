package iptables

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"podd/runtime/runtimetest/netns"
)

// The rules that a program of iptables prints on a node without other rules.
var (
	hintRules   = []string{"-N KUBE-IPTABLES-HINT"}
	filterRules = []string{
		"-N KUBE-FIREWALL",
		"-A INPUT -j KUBE-FIREWALL",
		"-A OUTPUT -j KUBE-FIREWALL",
		`-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`,
	}
)

// fakeProgram is a shell script that stores chains and rules in a file. If the file "busy" exists, it
// fails like iptables when another program holds the lock.
const fakeProgram = `#!/bin/sh
cd "$(dirname "$0")" || exit 9
name=$(basename "$0")
echo "$name $*" >>calls
if [ -e busy ]; then
	echo "Another app is currently holding the xtables lock." >&2
	exit 4
fi
operation=$3
shift 3
case $operation in
-S | -C) grep -qxFe "$name $*" state || exit 1 ;;
-N | -I | -A) echo "$name $*" >>state ;;
*) exit 2 ;;
esac
`

// installFake installs fake programs of iptables in a directory, which becomes the first one in PATH.
func installFake(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fakeProgram), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return dir
}

// readLines returns the lines of a file.
func readLines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestRun checks that all chains and rules are created, that those that are missing are created again
// after an interval, and that failures are logged once.
func TestRun(t *testing.T) {
	dir := installFake(t, "iptables", "ip6tables")
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(ctx, newSyncers(true, slog.New(slog.NewTextHandler(&log, nil))))
		}()
		next := func() { time.Sleep(interval); synctest.Wait() }
		synctest.Wait()
		state := filepath.Join(dir, "state")
		want := []string{
			"iptables KUBE-IPTABLES-HINT -t mangle",
			"iptables KUBE-FIREWALL -t filter",
			"iptables OUTPUT -t filter -j KUBE-FIREWALL",
			"iptables INPUT -t filter -j KUBE-FIREWALL",
			"iptables KUBE-FIREWALL -t filter -m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
			"ip6tables KUBE-IPTABLES-HINT -t mangle",
		}
		if got := readLines(t, state); !slices.Equal(got, want) {
			t.Errorf("first round: got chains and rules %q, want %q", got, want)
		}
		calls := readLines(t, filepath.Join(dir, "calls"))
		next()
		if got := readLines(t, state); !slices.Equal(got, want) {
			t.Errorf("second round: got chains and rules %q, want %q", got, want)
		}
		wantCalls := []string{
			"iptables -w 5 -S KUBE-IPTABLES-HINT -t mangle",
			"iptables -w 5 -C" + strings.TrimPrefix(want[4], "iptables"),
			"ip6tables -w 5 -S KUBE-IPTABLES-HINT -t mangle",
		}
		if got := readLines(t, filepath.Join(dir, "calls"))[len(calls):]; !slices.Equal(got, wantCalls) {
			t.Errorf("second round: got calls %q, want only checks: %q", got, wantCalls)
		}
		if err := os.WriteFile(state, []byte(want[0]+"\n"+want[2]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		next()
		got := readLines(t, state)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("after a partial flush: got chains and rules %q, want %q", got, want)
		}
		busy := filepath.Join(dir, "busy")
		if err := os.WriteFile(busy, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		next()
		next()
		if err := os.Remove(busy); err != nil {
			t.Fatal(err)
		}
		next()
		next()
		cancel()
		<-done
	})
	for message, want := range map[string]int{
		`msg="iptables chains and rules created" program=iptables created="mangle KUBE-IPTABLES-HINT, filter KUBE-FIREWALL, `: 1,
		`msg="iptables chains and rules created" program=ip6tables created="mangle KUBE-IPTABLES-HINT"`:                       2,
		`msg="iptables chains and rules created" program=iptables created="filter KUBE-FIREWALL, `:                            1,
		`msg="creating iptables chains failed; retrying in 1m0s" program=iptables `:                                           1,
		`holding the xtables lock`:                                        2,
		`msg="creating iptables chains succeeded again" program=iptables`: 1,
	} {
		if got := strings.Count(log.String(), message); got != want {
			t.Errorf("got %d times %s, want %d; log:\n%s", got, message, want, log.String())
		}
	}
}

// TestNewSyncers checks that programs that are not installed are skipped, and that podd logs if none is
// installed. On a host without IPv6, ip6tables is skipped without a message.
func TestNewSyncers(t *testing.T) {
	for _, c := range []struct {
		installed []string
		hasIPv6   bool
		want      []string
		log       string
	}{
		{nil, true, nil, "iptables is not installed"},
		{[]string{"iptables"}, true, []string{"iptables"}, ""},
		{[]string{"iptables", "ip6tables"}, true, []string{"iptables", "ip6tables"}, ""},
		{[]string{"iptables", "ip6tables"}, false, []string{"iptables"}, ""},
	} {
		dir := installFake(t, c.installed...)
		t.Setenv("PATH", dir)
		var log bytes.Buffer
		var got []string
		for _, s := range newSyncers(c.hasIPv6, slog.New(slog.NewTextHandler(&log, nil))) {
			got = append(got, s.program)
		}
		if !slices.Equal(got, c.want) || !strings.Contains(log.String(), c.log) || (log.Len() > 0) != (c.log != "") {
			t.Errorf("installed %q, IPv6 %t: got programs %q and log %q, want programs %q and log %q", c.installed, c.hasIPv6, got, log.String(), c.want, c.log)
		}
	}
}

// TestSync checks the rules in a private network namespace, with both variants of iptables. Rules of
// other programs must stay, and podd's own rules must be created again after a flush.
func TestSync(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can create a network namespace")
	}
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"iptables", "ip6tables"} {
				path, err := exec.LookPath(name + "-" + variant)
				if err != nil {
					t.Skipf("install iptables: %v", err)
				}
				if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			netns.Enter(t)
			t.Setenv("PATH", dir)
			for _, program := range []string{"iptables", "ip6tables"} {
				if err := exec.Command(program, "-S").Run(); err != nil {
					t.Skipf("the kernel does not support %s-%s: %v", program, variant, err)
				}
			}
			iptables(t, "iptables -A INPUT -s 192.0.2.1/32 -j DROP") // a rule of another program
			foreign := []string{"-A INPUT -s 192.0.2.1/32 -j DROP"}
			syncers := newSyncers(true, slog.New(slog.DiscardHandler))
			syncAll := func() {
				for _, s := range syncers {
					if _, err := s.sync(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			for range 2 { // the second round changes nothing
				syncAll()
				checkRules(t, "iptables", "mangle", hintRules)
				checkRules(t, "iptables", "filter", slices.Concat(filterRules, foreign))
				checkRules(t, "ip6tables", "mangle", hintRules)
				checkRules(t, "ip6tables", "filter", nil)
			}
			if got := iptables(t, "iptables -S INPUT"); !strings.Contains(got, "-P INPUT ACCEPT\n-A INPUT -j KUBE-FIREWALL\n") {
				t.Errorf("chain INPUT: got %s, want the jump to KUBE-FIREWALL before other rules", got)
			}
			for _, flush := range []string{"iptables -F", "iptables -X", "iptables -t mangle -X", "ip6tables -t mangle -X"} {
				iptables(t, flush)
			}
			checkRules(t, "iptables", "filter", nil)
			syncAll()
			checkRules(t, "iptables", "mangle", hintRules)
			checkRules(t, "iptables", "filter", filterRules)
			checkRules(t, "ip6tables", "mangle", hintRules)
		})
	}
}

// iptables runs a command without quotes, and returns its output.
func iptables(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// checkRules checks the rules of a table, in any order, and its chains except those of the kernel.
func checkRules(t *testing.T, program, table string, want []string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(iptables(t, fmt.Sprintf("%s -t %s -S", program, table))) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-P ") {
			got = append(got, line)
		}
	}
	want = slices.Sorted(slices.Values(want))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s, table %s: got rules\n%s\nwant\n%s", program, table, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
