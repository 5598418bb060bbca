package stack

import (
	"fmt"
	"os"
	"strconv"

	"podd/runtime/runtimetest/stack/reservation"
)

// descendants returns the children of the processes in ancestors, the children of these children,
// and so on. A container's processes are descendants of its shim, because the shim becomes the
// parent of orphaned processes.
func descendants(ancestors []reservation.Owner) ([]reservation.Owner, error) {
	children, err := processTree()
	if err != nil {
		return nil, err
	}
	visited := map[int]bool{}
	for _, o := range ancestors {
		visited[o.PID] = true
	}
	var found []reservation.Owner
	for queue := ancestors; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0].PID] {
			if visited[child.PID] {
				continue
			}
			visited[child.PID] = true
			found = append(found, child)
			queue = append(queue, child)
		}
	}
	return found, nil
}

// processTree returns the children of every process that has children, by process ID.
func processTree() (map[int][]reservation.Owner, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing the processes of the host: %w", err)
	}
	children := map[int][]reservation.Owner{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		owner, err := reservation.FindProcess(pid)
		if err != nil { // the process has exited
			continue
		}
		children[owner.Parent()] = append(children[owner.Parent()], owner)
	}
	return children, nil
}
