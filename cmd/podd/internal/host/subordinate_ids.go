package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/runtime"
	"podd/runtime/oomscore"
)

const (
	// subordinateIDsUser is the user whose subordinate IDs are the IDs of pods with user namespaces.
	// podd uses the same user as the kubelet, so that the configuration of a node stays valid.
	subordinateIDsUser = "kubelet"
	// subordinateIDsTimeout limits the duration of getsubids and getent, which may send requests to
	// another host.
	subordinateIDsTimeout = 30 * time.Second
	// subordinateIDsRemedy is the end of error messages.
	subordinateIDsRemedy = "; correct the entries of kubelet in /etc/subuid and /etc/subgid, or delete the user kubelet"
)

// ReadHostIDs returns the user and group IDs of the host that pods with user namespaces may use. As in
// the kubelet (getKubeletMappings in pkg/kubelet/kubelet_pods.go), they are the subordinate IDs of the
// user kubelet if this user exists and the program getsubids is installed. Otherwise ReadHostIDs returns
// the zero range, which means all IDs from cfg.IDsPerPod. It returns an error if the user has no
// subordinate IDs, because getsubids also reports no IDs if a remote service is unreachable.
func ReadHostIDs(cfg *config.Config) (runtime.IDRange, error) {
	ctx, cancel := context.WithTimeout(context.Background(), subordinateIDsTimeout)
	defer cancel()
	return readHostIDs(ctx, cfg, userExists)
}

// readHostIDs implements ReadHostIDs. hasUser reports whether a user exists.
func readHostIDs(ctx context.Context, cfg *config.Config, hasUser func(ctx context.Context, name string) (bool, error)) (none runtime.IDRange, err error) {
	program, err := exec.LookPath("getsubids")
	if errors.Is(err, exec.ErrNotFound) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("finding the program getsubids: %w; correct PATH", err)
	}
	if exists, err := hasUser(ctx, subordinateIDsUser); err != nil || !exists {
		return none, err
	}
	uids, err := output(ctx, program, subordinateIDsUser)
	if err != nil {
		return none, fmt.Errorf("reading the subordinate user IDs of pods: %w%s", err, subordinateIDsRemedy)
	}
	gids, err := output(ctx, program, "-g", subordinateIDsUser)
	if err != nil {
		return none, fmt.Errorf("reading the subordinate group IDs of pods: %w%s", err, subordinateIDsRemedy)
	}
	if uids != gids {
		return none, fmt.Errorf("the subordinate IDs of pods are not valid: the user IDs %q differ from the group IDs %q%s", uids, gids, subordinateIDsRemedy)
	}
	ids, err := parseSubordinateIDs(uids)
	if err == nil {
		err = checkHostIDs(ids, cfg.IDsPerPod, cfg.MaxPods)
	}
	if err != nil {
		return none, fmt.Errorf("the subordinate IDs of pods are not valid: %w%s", err, subordinateIDsRemedy)
	}
	return ids, nil
}

// parseSubordinateIDs parses the output of getsubids, such as "0: kubelet 65536 2147483648", which
// contains the first ID and the number of IDs. There must be exactly one line.
func parseSubordinateIDs(text string) (ids runtime.IDRange, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 1 {
		return ids, fmt.Errorf("the user has %d ranges of IDs, but must have one", len(lines))
	}
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return ids, fmt.Errorf("unknown output of getsubids: %q", text)
	}
	first, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return ids, fmt.Errorf("first ID: %w", err)
	}
	length, err := strconv.ParseUint(fields[3], 10, 32)
	if err != nil {
		return ids, fmt.Errorf("number of IDs: %w", err)
	}
	return runtime.IDRange{First: uint32(first), Length: uint32(length)}, nil
}

// checkHostIDs checks the IDs of all pods with the rules of the kubelet (pkg/kubelet/userns): the first
// ID and the number of IDs must be multiples of idsPerPod, the IDs below idsPerPod belong to the users
// of the host, and there must be IDs for maxPods pods.
func checkHostIDs(ids runtime.IDRange, idsPerPod uint32, maxPods int) error {
	switch {
	case ids.First < idsPerPod || ids.First%idsPerPod != 0:
		return fmt.Errorf("the first ID %d is not a positive multiple of %d (userNamespaces.idsPerPod)", ids.First, idsPerPod)
	case ids.Length%idsPerPod != 0:
		return fmt.Errorf("the number of IDs, %d, is not a multiple of %d (userNamespaces.idsPerPod)", ids.Length, idsPerPod)
	case int64(ids.Length/idsPerPod) < int64(maxPods):
		return fmt.Errorf("%d IDs are enough for only %d pods, but maxPods is %d", ids.Length, ids.Length/idsPerPod, maxPods)
	case ids.End() > math.MaxUint32+1:
		return fmt.Errorf("the IDs end at %d, but the highest ID is %d", ids.End()-1, uint32(math.MaxUint32))
	}
	return nil
}

// userExists reports whether the host has a user. A program without cgo can only read /etc/passwd.
// Therefore userExists uses getent, if it is installed, for users in other databases, such as LDAP.
func userExists(ctx context.Context, name string) (bool, error) {
	_, err := user.Lookup(name)
	if err == nil {
		return true, nil
	}
	if _, isUnknown := errors.AsType[user.UnknownUserError](err); !isUnknown {
		return false, fmt.Errorf("looking up the user %s: %w", name, err)
	}
	program, err := exec.LookPath("getent")
	if err != nil {
		return false, nil
	}
	_, err = output(ctx, program, "passwd", name)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 { // not found
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking up the user %s: %w", name, err)
	}
	return true, nil
}

// output runs a program and returns its output without white space around it. An error contains the
// command and its error output.
func output(ctx context.Context, program string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	err := oomscore.Run(cmd)
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not finish within %s", subordinateIDsTimeout)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(append([]string{program}, args...), " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
