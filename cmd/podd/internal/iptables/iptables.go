// Package iptables creates the iptables chains of a node for other programs, as the kubelet does with
// makeIPTablesUtilChains. podd itself does not use them.
//
//   - The chain KUBE-IPTABLES-HINT in the table mangle, for IPv4 and IPv6, has no rules. It exists either
//     in iptables-legacy or in iptables-nft. Programs in containers, such as kube-proxy and network
//     add-ons, thereby find out which of them the host uses (KEP-3178).
//   - The chain KUBE-FIREWALL in the table filter, for IPv4, drops packets to 127.0.0.0/8 from other
//     hosts (CVE-2020-8558). kube-proxy in its mode iptables creates an identical rule, so the rule must
//     not differ from that of the kubelet.
//
// The package only adds missing chains and rules. It removes none, not even when podd stops, because
// other programs may use them.
//
// There are two differences from the kubelet. To detect a flush, the kubelet checks a third chain,
// KUBE-KUBELET-CANARY, in the table mangle. podd checks KUBE-IPTABLES-HINT and the rule in KUBE-FIREWALL,
// so that it also detects a flush of the table filter. If its first attempt fails, the kubelet gives up,
// and podd tries again.
package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"podd/runtime/oomscore"
)

const (
	// interval is the interval between checks of the chains, as in the kubelet.
	interval = time.Minute
	// lockSeconds is the time in seconds for which a program waits for the lock of iptables, as in the
	// kubelet.
	lockSeconds = "5"
	// programTimeout is the maximum duration of a program. With many rules, iptables takes seconds.
	programTimeout = time.Minute
	// killDelay is the maximum time for which podd waits for the output of a killed program.
	killDelay = 2 * time.Second
)

// An object is a chain or a rule.
type object struct {
	table, chain string
	rule         []string // the specification of a rule; nil for a chain
	// isFirst is set if the rule is inserted before the other rules of the chain.
	isFirst bool
	// isCanary is set if podd checks the object at each interval. If a canary is missing, podd checks all
	// objects. There are few canaries, because each check starts a program.
	isCanary bool
}

const firewallChain = "KUBE-FIREWALL"

var (
	hintObjects = []object{{table: "mangle", chain: "KUBE-IPTABLES-HINT", isCanary: true}}
	// firewallObjects are in the order in which they must be created.
	firewallObjects = []object{
		{table: "filter", chain: firewallChain},
		{table: "filter", chain: "OUTPUT", rule: []string{"-j", firewallChain}, isFirst: true},
		{table: "filter", chain: "INPUT", rule: []string{"-j", firewallChain}, isFirst: true},
		{table: "filter", chain: firewallChain, isCanary: true, rule: []string{
			"-m", "comment", "--comment", "block incoming localnet connections",
			"--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
			"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP",
		}},
	}
)

// String returns the table and the chain, and the specification of a rule.
func (o object) String() string {
	return strings.Join(append([]string{o.table, o.chain}, o.rule...), " ")
}

// args returns the arguments of a program for an operation on o.
func (o object) args(operation string) []string {
	return append([]string{"-w", lockSeconds, operation, o.chain, "-t", o.table}, o.rule...)
}

// checkArgs returns the arguments with which a program succeeds if o exists.
func (o object) checkArgs() []string {
	if o.rule == nil {
		return o.args("-S")
	}
	return o.args("-C")
}

// createArgs returns the arguments that create o.
func (o object) createArgs() []string {
	switch {
	case o.rule == nil:
		return o.args("-N")
	case o.isFirst:
		return o.args("-I")
	}
	return o.args("-A")
}

// A syncer creates the objects of one program.
type syncer struct {
	program    string // iptables or ip6tables
	objects    []object
	log        *slog.Logger
	isComplete bool // the last attempt has found or created all objects
	hasFailed  bool // the last attempt has failed
}

// Run creates the chains and rules, and creates them again within a minute after a flush, until ctx is
// done. If no program is installed, Run returns immediately.
func Run(ctx context.Context, log *slog.Logger) {
	_, err := os.Stat("/proc/net/if_inet6") // exists only if the kernel supports IPv6
	run(ctx, newSyncers(err == nil, log))
}

// newSyncers returns a syncer for each program that is installed. It logs if none is installed.
func newSyncers(hasIPv6 bool, log *slog.Logger) (syncers []*syncer) {
	if isInstalled("iptables") {
		syncers = append(syncers, &syncer{program: "iptables", objects: slices.Concat(hintObjects, firewallObjects), log: log})
	}
	if hasIPv6 && isInstalled("ip6tables") {
		syncers = append(syncers, &syncer{program: "ip6tables", objects: hintObjects, log: log})
	}
	if len(syncers) == 0 {
		log.Info("iptables is not installed; not creating the chains KUBE-IPTABLES-HINT and KUBE-FIREWALL")
	}
	return syncers
}

// isInstalled reports whether PATH contains a program.
func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func run(ctx context.Context, syncers []*syncer) {
	if len(syncers) == 0 {
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		for _, s := range syncers {
			created, err := s.sync(ctx)
			if ctx.Err() != nil {
				return
			}
			s.report(created, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sync creates the objects that are missing, and returns them. If the last attempt was complete, it looks
// for missing objects only after a canary is missing.
func (s *syncer) sync(ctx context.Context) (created []string, err error) {
	if s.isComplete {
		if isFlushed, err := s.isFlushed(ctx); err != nil || !isFlushed {
			return nil, err
		}
	}
	created, err = s.ensure(ctx)
	s.isComplete = err == nil
	return created, err
}

// isFlushed reports whether a canary is missing.
func (s *syncer) isFlushed(ctx context.Context) (bool, error) {
	for _, o := range s.objects {
		if !o.isCanary {
			continue
		}
		if exists, err := s.exists(ctx, o); err != nil || !exists {
			return true, err
		}
	}
	return false, nil
}

// ensure creates the objects that are missing, and returns them. It stops at the first error, because an
// object needs the objects before it.
func (s *syncer) ensure(ctx context.Context) (created []string, err error) {
	for _, o := range s.objects {
		exists, err := s.exists(ctx, o)
		if err != nil {
			return created, fmt.Errorf("checking %s: %w", o, err)
		}
		if exists {
			continue
		}
		if err := s.execute(ctx, o.createArgs()); err != nil {
			return created, fmt.Errorf("creating %s: %w", o, err)
		}
		created = append(created, o.String())
	}
	return created, nil
}

// exists reports whether an object exists.
func (s *syncer) exists(ctx context.Context, o object) (bool, error) {
	err := s.execute(ctx, o.checkArgs())
	// With the exit code 1, the operation is valid but has failed. Other codes report that iptables cannot
	// carry out any operation, for example because another program holds its lock.
	if exitErr, ok := errors.AsType[*exec.ExitError](err); ok && exitErr.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// execute runs the program. The error contains its output.
func (s *syncer) execute(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, programTimeout, fmt.Errorf("no response within %s", programTimeout))
	defer cancel()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &output, &output, killDelay
	err := oomscore.Run(cmd)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case output.Len() == 0: // for example, the program cannot be started
		return err
	}
	return fmt.Errorf("%w: %.300s", err, strings.TrimSpace(output.String()))
}

// report logs the created objects, the first of consecutive failures, and the first success after it.
func (s *syncer) report(created []string, err error) {
	if len(created) > 0 {
		s.log.Info("iptables chains and rules created", "program", s.program, "created", strings.Join(created, ", "))
	}
	switch {
	case err != nil && !s.hasFailed:
		s.log.Warn("creating iptables chains failed; retrying in "+interval.String(), "program", s.program, "err", err)
	case err == nil && s.hasFailed:
		s.log.Info("creating iptables chains succeeded again", "program", s.program)
	}
	s.hasFailed = err != nil
}
