package podrunner

import (
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/rotate"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/runtime/logs"
)

// A ContainerLog is the log of the newest attempt of a container.
type ContainerLog struct {
	Pod       types.NamespacedName
	Container string
	Attempt   uint32
}

// listLogs returns the logs of the containers in reports for which mayRotate returns true.
func listLogs(reports []*state.Report, mayRotate func(ContainerLog) bool) []rotate.Log {
	var all []rotate.Log
	for _, r := range reports {
		for i := range r.Observed {
			if inc := &r.Observed[i]; !inc.Foreign {
				all = append(all, incarnationLogs(r.Key, inc, mayRotate)...)
			}
		}
	}
	return all
}

// incarnationLogs returns the logs of the newest attempts of the containers of inc, as listLogs does.
func incarnationLogs(key types.NamespacedName, inc *runtime.Incarnation, mayRotate func(ContainerLog) bool) []rotate.Log {
	newest := map[string]*runtime.Container{}
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if n := newest[c.Name]; n == nil || n.Attempt < c.Attempt {
			newest[c.Name] = c
		}
	}
	var rotatable []rotate.Log
	for name, c := range newest {
		l := rotate.Log{Dir: filepath.Join(logs.DirName(key, inc.UID), name), Attempt: c.Attempt}
		if c.State == runtime.Running {
			l.ID = c.ID
		}
		if filepath.IsLocal(l.Dir) && mayRotate(ContainerLog{key, name, c.Attempt}) {
			rotatable = append(rotatable, l)
		}
	}
	return rotatable
}
