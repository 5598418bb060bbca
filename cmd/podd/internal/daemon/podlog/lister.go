package podlog

import (
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/rotate"
	"podd/runtime/logs"
	"podd/server"
)

// NewLister returns a function that returns the logs of all pods in the current View. For pods
// that have not changed since its last call, the function returns the previous result. Only one
// goroutine at a time may call the function.
func NewLister(state server.Viewer) func() []rotate.Log {
	var lastView *server.View
	var allLogs []rotate.Log
	byPod := map[*server.PodView][]rotate.Log{}
	return func() []rotate.Log {
		v := state.View()
		if v == lastView {
			return allLogs
		}
		nextByPod := make(map[*server.PodView][]rotate.Log, len(v.Pods))
		allLogs = allLogs[:0]
		for _, p := range v.Pods {
			logs, isListed := byPod[p]
			if !isListed {
				logs = podLogs(p)
			}
			nextByPod[p] = logs
			allLogs = append(allLogs, logs...)
		}
		lastView, byPod = v, nextByPod
		return allLogs
	}
}

func podLogs(p *server.PodView) []rotate.Log {
	var rotatable []rotate.Log
	key := types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
	dir := logs.DirName(key, p.Pod.UID)
	for c := range server.ContainerStatuses(p.Pod) {
		if l, ok := containerLog(dir, c, p.Attempts); ok {
			rotatable = append(rotatable, l)
		}
	}
	return rotatable
}

// containerLog returns the log of one container. ok is false if the container never ran.
// attempts is the field Attempts of server.PodView.
func containerLog(dir string, c *v1.ContainerStatus, attempts map[string]uint32) (log rotate.Log, ok bool) {
	_, id, _ := strings.Cut(c.ContainerID, "://")
	attempt, differs := attempts[id]
	if !differs {
		attempt = uint32(c.RestartCount)
	}
	l := rotate.Log{Dir: filepath.Join(dir, c.Name), Attempt: attempt}
	if c.State.Running != nil {
		l.ID = id
	}
	return l, c.ContainerID != "" && filepath.IsLocal(l.Dir)
}
