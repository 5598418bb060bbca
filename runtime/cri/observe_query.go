package cri

import (
	"context"
	"errors"
	"slices"

	"podd/runtime"
)

// A queryResult is the result of the status query for one sandbox or container.
type queryResult int

const (
	notQueried   queryResult = iota
	retryPending             // the query failed in an earlier pass and must not be repeated yet
	queryDone
	queryNotFound
	queryFailed
)

// query queries the sandbox's addresses and host IDs.
func (s *sandboxDraft) query(ctx, passCtx context.Context, o *Observer) (err error) {
	status, isStored := o.client.responses.sandbox(s.sandbox.ID)
	if !isStored {
		calls := o.sandboxCalls
		if s.sandbox.Foreign {
			calls = o.foreignCalls
		}
		status, err = calls.get(ctx, passCtx, s.sandbox.ID, s.sandbox.Ready, func() { o.marks.markPod(s.key, 0) })
	}
	s.result = toQueryResult(err)
	if s.result == queryDone {
		s.sandbox.IPs, s.sandbox.MappedIDs, s.sandbox.Ready = status.IPs, status.MappedIDs, status.Ready
	}
	return err
}

// query queries the container's status. It keeps the image name from the list, because the status
// contains only an arbitrary one of the image's tags. A status without an exit code is treated as a
// failed query.
func (c *containerDraft) query(ctx, passCtx context.Context, o *Observer) (err error) {
	status, isStored := o.client.responses.container(c.container.ID)
	if !isStored || c.container.State != runtime.Running {
		status, err = o.containerCalls.get(ctx, passCtx, c.container.ID, c.container.State, func() { o.marks.markPod(c.key, 0) })
	}
	if err == nil && status.State == runtime.ExitCodeUnknown {
		err = errNoExitCode
	}
	c.result = toQueryResult(err)
	if c.result == queryDone {
		fromList := c.container
		c.container = status
		c.container.SandboxID, c.container.Image = fromList.SandboxID, fromList.Image
		c.container.Labels, c.container.Annotations = fromList.Labels, fromList.Annotations
	} else if c.result == queryFailed {
		c.container.Message = err.Error()
	}
	return err
}

// toQueryResult returns the result of a query that returned err.
func toQueryResult(err error) queryResult {
	switch {
	case err == nil:
		return queryDone
	case errors.Is(err, runtime.ErrNotFound):
		return queryNotFound
	}
	return queryFailed
}

// queriedIDs returns the IDs of the sandboxes and containers that were queried in this pass.
func (d *draft) queriedIDs() map[string]bool {
	ids := make(map[string]bool, len(d.sandboxesToQuery)+len(d.foreignToQuery)+len(d.containersToQuery))
	for _, s := range slices.Concat(d.sandboxesToQuery, d.foreignToQuery) {
		ids[s.sandbox.ID] = true
	}
	for _, c := range d.containersToQuery {
		ids[c.container.ID] = true
	}
	return ids
}
