package main

import (
	"context"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/reconcile/rotate"
	"podd/server"
)

// rotateLogs keeps the pods' logs bounded until ctx is done.
func (d *podd) rotateLogs(ctx context.Context) error {
	if d.cfg.LogMaxSize < 0 {
		return nil
	}
	return rotate.New(rotate.Options{
		Root: d.cfg.PodLogsDir, MaxSize: d.cfg.LogMaxSize, MaxFiles: d.cfg.LogMaxFiles, Every: d.cfg.LogEvery,
		Logs: d.writtenLogs, Reopen: d.client.ReopenContainerLog, Log: d.log,
	}).Run(ctx)
}

// writtenLogs are the logs of all pods that are shown.
func (d *podd) writtenLogs() []rotate.Log { return writtenLogs(d.view.latest.View()) }

func writtenLogs(v *server.View) []rotate.Log {
	var all []rotate.Log
	for _, p := range v.Pods {
		key := types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
		dir := filepath.Base(render.LogDirectory(&manifest.Pod{Key: key, UID: p.Pod.UID}, render.Node{}))
		for c := range server.Statuses(p.Pod) {
			if l, ok := writtenLog(dir, c); ok {
				all = append(all, l)
			}
		}
	}
	return all
}

// writtenLog is that of one container; false when it never ran.
func writtenLog(dir string, c *v1.ContainerStatus) (rotate.Log, bool) {
	l := rotate.Log{Dir: filepath.Join(dir, c.Name), Attempt: uint32(c.RestartCount)}
	if c.State.Running != nil {
		_, l.ID, _ = strings.Cut(c.ContainerID, "://")
	}
	return l, c.ContainerID != "" && filepath.IsLocal(l.Dir)
}
