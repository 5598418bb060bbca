// Package offline contains the verbs that need no running podd: validate, plan, volume and
// completion. If a podd runs, plan and volume use its configuration for everything that the
// command line does not set.
package offline
