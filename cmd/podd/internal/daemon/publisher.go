package daemon

import (
	"log/slog"
	"slices"
	"time"

	"podd/cmd/podd/internal/daemon/view"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/eviction"
	"podd/reconcile/gc/images"
	"podd/server/events"
)

// A publisher passes the router's changes to the view, the event log, the storage limiter, the
// cgroups of QoS classes and the image garbage collection. Only the router's goroutine calls it.
type publisher struct {
	events      *events.Log
	view        *view.Publisher
	reportCache *eviction.ReportCache
	qos         *qosSyncer
	imagePods   *images.Pods
	onChange    func() // called after each change, so that podd can later free the memory that the change has used
	log         *slog.Logger

	// reportedFindings are the findings that publish last logged and recorded as events, and
	// reportedFiles are the states of the files at that time.
	reportedFindings view.Findings
	reportedFiles    []manifest.FileState
}

// publish passes a change to all receivers.
func (p *publisher) publish(c reconcile.Change) {
	p.events.Add(eventNotes(c.Events)...)
	if c.EventsOnly {
		return
	}
	findings := p.view.Publish(c)
	p.reportCache.Apply(c)
	p.qos.recordChange(c)
	p.imagePods.Apply(c)
	if c.SetChanged {
		reported := p.reportedFindings
		logProblems(p.log, fileReport{findings.Problems, c.Set.FileStates}, fileReport{reported.Problems, p.reportedFiles})
		p.reportedFindings, p.reportedFiles = findings, c.Set.FileStates
		p.events.Add(eventNotes(dnsWarningEvents(c.Set, slices.Concat(reported.Problems, reported.EventOnlyProblems), slices.Concat(findings.Problems, findings.EventOnlyProblems), time.Now()))...)
	}
	p.onChange()
}
