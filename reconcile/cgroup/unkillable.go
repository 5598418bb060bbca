package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// maxUnkillable is the maximum number of processes that UnkillableProcesses returns.
const maxUnkillable = 5

// UnkillableProcesses returns the processes of a pod that SIGKILL cannot terminate at present, each
// as `PID "COMMAND"`. A thread of such a process is in an uninterruptible wait in the kernel (state
// D in proc_pid_stat(5)). The wait ends when a disk or a file server responds. root is the parent
// of kubepods, as in RemovePod. UnkillableProcesses ignores processes that it cannot read, and
// returns at most maxUnkillable processes.
func UnkillableProcesses(root string, uid types.UID) []string {
	points, err := listMountPoints()
	if err != nil {
		return nil
	}
	var pids []int
	for _, point := range points {
		for _, podDir := range PodPaths(root, uid) {
			pids = append(pids, listProcesses(filepath.Join(point, podDir), 0)...)
		}
	}
	slices.Sort(pids)
	var processes []string
	// Skip duplicates: with cgroup v1, a process is in several hierarchies.
	for _, pid := range slices.Compact(pids) {
		if len(processes) == maxUnkillable {
			break
		}
		if command, ok := findUninterruptible(fmt.Sprintf("/proc/%d", pid)); ok {
			processes = append(processes, fmt.Sprintf("%d %q", pid, command))
		}
	}
	return processes
}

// findUninterruptible finds a thread of a process that is in an uninterruptible wait, and returns
// the command name of the thread. ok is false if there is no such thread. dir is the directory of
// the process in /proc.
func findUninterruptible(dir string) (command string, ok bool) {
	stats, err := filepath.Glob(filepath.Join(dir, "task/*/stat"))
	if err != nil {
		return "", false
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has exited
		}
		if command, state := parseStat(text); state == 'D' {
			return command, true
		}
	}
	return "", false
}

// parseStat returns the command name and the state of a thread from the content of its file
// stat, such as "7 (date) D 1 …". The command name may contain any character, also ")".
// state is 0 if the text is malformed.
func parseStat(text []byte) (command string, state byte) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin || len(text) < end+3 {
		return "", 0
	}
	return string(text[begin+1 : end]), text[end+2]
}
