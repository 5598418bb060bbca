package inspect

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/paths"
	"podd/reconcile"
	"podd/server"
)

// readProcesses returns the processes that run pods. It also sets the field Owner of each port that is
// in use.
func readProcesses(ctx context.Context, cfg *config.Config, ports []check.Port) check.Processes {
	p := check.Processes{SocketPID: socketPID(ctx, cfg.RunDir)}
	if id, _, err := reconcile.ReadInstanceIDs(cfg.RootDir); err == nil && id != "" {
		p.RootDirPID, p.Err = reconcile.FindInstanceProcess(id)
	}
	processes, err := procfs.AllProcs()
	if err != nil {
		p.Err = errors.Join(p.Err, err)
		return p
	}
	bySocket := portsBySocket(ports)
	for _, proc := range processes {
		name, err := proc.Comm()
		if err != nil {
			continue // the process has exited
		}
		owner := check.Process{PID: proc.PID, Name: name}
		for _, i := range ownedPorts(proc, bySocket) {
			ports[i].Owner = owner
		}
		if agent, ok := readAgent(proc, name, cfg); ok {
			p.Agents = append(p.Agents, agent)
		}
	}
	return p
}

// socketPID returns the PID of the podd that listens on the socket in the run directory, or 0 if
// there is none. It ignores a process that runs neither as root nor as the user of this process.
func socketPID(ctx context.Context, runDir string) int {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(runDir, server.SocketName))
	if err != nil {
		return 0
	}
	defer conn.Close()
	if uid, err := server.PeerUID(conn.(*net.UnixConn)); err != nil || !server.IsTrusted(uid) {
		return 0
	}
	pid, err := server.PeerPID(conn.(*net.UnixConn))
	if err != nil {
		return 0
	}
	return pid
}

// portsBySocket finds the sockets that conflict with ports in use. For each of these sockets, it
// returns the indexes of the ports with which the socket conflicts. The keys have the format of the
// links in /proc/PID/fd.
func portsBySocket(ports []check.Port) map[string][]int {
	bySocket := map[string][]int{}
	if !slices.ContainsFunc(ports, func(p check.Port) bool { return p.Err != nil }) {
		return bySocket
	}
	for _, l := range listeners() {
		for i, p := range ports {
			if p.Err != nil && l.conflicts(p.Address) {
				key := "socket:[" + l.inode + "]"
				bySocket[key] = append(bySocket[key], i)
			}
		}
	}
	return bySocket
}

// ownedPorts returns the indexes of the ports whose sockets a process has opened.
func ownedPorts(proc procfs.Proc, bySocket map[string][]int) (pids []int) {
	if len(bySocket) == 0 {
		return nil
	}
	targets, _ := proc.FileDescriptorTargets() // if the process has exited, it owns no port
	for _, target := range targets {
		pids = append(pids, bySocket[target]...)
	}
	return pids
}

// readAgent returns the check.Agent for a process. ok is true only for a kubelet or a podd daemon
// that runs as root in the PID namespace of this process. A kubelet in another PID namespace
// belongs to another node, such as a node that kind (Kubernetes in Docker) runs in a container.
func readAgent(proc procfs.Proc, name string, cfg *config.Config) (a check.Agent, ok bool) {
	if name != "kubelet" && name != "podd" || !isRoot(proc.PID) || !sharesPIDNamespace(proc.PID) {
		return a, false
	}
	words, err := proc.CmdLine()
	if err != nil || len(words) == 0 {
		return a, false // the process has exited
	}
	s, ok := parseCommandLine(words)
	if !ok {
		return a, false
	}
	s.resolve(name, filepath.Join("/proc", strconv.Itoa(proc.PID)))
	return check.Agent{
		Process: check.Process{PID: proc.PID, Name: name}, SharesRoot: s.rootDir != "" && paths.SameFile(s.rootDir, cfg.RootDir),
		SharedManifests: slices.DeleteFunc(slices.Clone(cfg.ManifestPaths), func(path string) bool {
			return !slices.ContainsFunc(s.manifests, func(agentPath string) bool { return paths.SameFile(agentPath, path) })
		}),
	}, true
}

func isRoot(pid int) bool {
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}

// sharesPIDNamespace reports whether a process has the PID namespace of this process.
func sharesPIDNamespace(pid int) bool {
	ownNamespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return true
	}
	namespace, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
	return err == nil && ownNamespace == namespace
}

// An agentSettings contains the settings of a kubelet or podd that must differ from those of this
// podd.
type agentSettings struct {
	rootDir, configFile string
	manifests           []string
}

// parseCommandLine returns the settings in the command line of a kubelet or podd. ok is false if a
// podd with this command line is not a node agent, because its verb is not "run" (but, for
// example, "ps"), or because of --runonce.
func parseCommandLine(words []string) (s agentSettings, ok bool) {
	remainingWords := words[1:]
	if len(remainingWords) > 0 && !strings.HasPrefix(remainingWords[0], "-") {
		if remainingWords[0] != "run" {
			return s, filepath.Base(words[0]) == "kubelet"
		}
		remainingWords = remainingWords[1:]
	}
	for i, word := range remainingWords {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !hasValue && i+1 < len(remainingWords) {
			value = remainingWords[i+1]
		}
		if !strings.HasPrefix(word, "-") {
			continue
		}
		switch strings.ReplaceAll(name, "_", "-") {
		case "root-dir":
			s.rootDir = value
		case "config":
			s.configFile = value
		case "pod-manifest-path":
			s.manifests = append(s.manifests, value)
		case "runonce":
			if !hasValue || value == "true" {
				return s, false
			}
		}
	}
	return s, true
}
