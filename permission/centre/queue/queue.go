// Package queue keeps the centre's work in the store's own database, so that
// a job is there exactly when the change that calls for it is. River runs it:
// its SQLite driver for one replica, and its pgx driver, which is told of new
// jobs at once, for many. Every provider has a queue of its own, first come
// first served, so that none waits for another's.
package queue

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// poll is how soon SQLite's queue sees a new job; PostgreSQL's is told.
	poll       = 50 * time.Millisecond
	pollShared = 200 * time.Millisecond
	cooldown   = 20 * time.Millisecond

	// soon is what River's scheduler, which wakes every 5 s, is too coarse
	// for: such a job is handed out at once and puts itself off.
	soon = 6 * time.Second

	// What was due before has had its turn and could not use it: it goes first.
	overdue = 100 * time.Millisecond
	first   = 1
	inTurn  = 2

	// jobTimeout is longer than any job: a wait for the provider's pace, its
	// timeout, two transactions.
	jobTimeout = 2 * time.Minute

	// keep is how long a job that is done is still to be seen.
	keep = 10 * time.Minute
)

// Job is one step of one grant. Of every step there is one job.
type Job struct {
	Application string `json:"application"`
	Ordinal     int    `json:"ordinal"`
	Step        int64  `json:"step"`
}

// Kind is the job's name in the database.
func (Job) Kind() string { return "grant" }

// InsertOpts make the job unique.
func (Job) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

// Later is returned by a handler whose job is not due yet.
type Later struct{ In time.Duration }

func (l Later) Error() string { return "not due for " + l.In.String() }

// Handler does a job. An error has it tried again.
type Handler interface {
	Handle(ctx context.Context, job Job) error
}

// runner is what of a River client does not depend on its driver.
type runner interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	Queues() *river.QueueBundle
}

// Queue of the jobs of all providers.
type Queue struct {
	insert  *river.Client[*sql.Tx]
	run     runner
	workers int
	now     func() time.Time
}

// New makes the queue of a store; workers is how many jobs of one provider
// this replica does at once.
func New(s *store.Store, handler Handler, workers int, now func() time.Time, log *slog.Logger) (*Queue, error) {
	all := river.NewWorkers()
	river.AddWorker(all, &worker{handler: handler})
	config := &river.Config{
		Workers: all, Logger: log, JobTimeout: jobTimeout, RescueStuckJobsAfter: jobTimeout + time.Minute,
		Queues:        map[string]river.QueueConfig{"idle": {MaxWorkers: 1, FetchPollInterval: time.Minute}},
		FetchCooldown: cooldown, FetchPollInterval: poll, RetryPolicy: &retry{now: now},
		CompletedJobRetentionPeriod: keep, CancelledJobRetentionPeriod: keep, DiscardedJobRetentionPeriod: keep,
	}
	q := &Queue{workers: workers, now: now}
	var err error
	if !s.Shared() {
		q.insert, err = river.NewClient(riversqlite.New(s.Writer()), config)
		q.run = q.insert
		return q, wrap(err)
	}
	config.FetchPollInterval = pollShared
	if q.run, err = river.NewClient(riverpgxv5.New(s.Pool()), config); err != nil {
		return nil, wrap(err)
	}
	q.insert, err = river.NewClient(riverdatabasesql.New(s.Writer()), &river.Config{Logger: log})
	return q, wrap(err)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("create the queue: %w", err)
}

// Enqueue adds a job in the transaction, for when it is due, and returns its number.
func (q *Queue) Enqueue(ctx context.Context, tx *sql.Tx, provider string, job Job, due time.Time) (int64, error) {
	opts := &river.InsertOpts{Queue: name(provider), Priority: inTurn}
	switch wait := due.Sub(q.now()); {
	case wait > soon:
		opts.ScheduledAt = due
	case wait < -overdue:
		opts.Priority = first
	}
	inserted, err := q.insert.InsertTx(ctx, tx, job, opts)
	if err != nil {
		return 0, fmt.Errorf("enqueue: %w", err)
	}
	return inserted.Job.ID, nil
}

// Serve begins to do a provider's jobs here, if it has not.
func (q *Queue) Serve(provider string) error {
	err := q.run.Queues().Add(name(provider), river.QueueConfig{MaxWorkers: q.workers})
	var already *river.QueueAlreadyAddedError
	if errors.As(err, &already) {
		return nil
	}
	return err
}

// Run does jobs until ctx ends; then those that run may end within drain.
func (q *Queue) Run(ctx context.Context, drain time.Duration) error {
	// Not ctx: its end would cut the jobs off.
	if err := q.run.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	<-ctx.Done()
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := q.run.Stop(soft); err == nil {
		return nil
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	return q.run.StopAndCancel(hard)
}

// name is a provider's queue; not every provider's name would do.
func name(provider string) string {
	sum := sha256.Sum256([]byte(provider))
	return "p-" + hex.EncodeToString(sum[:10])
}

type worker struct {
	river.WorkerDefaults[Job]
	handler Handler
}

// Work does one job.
func (w *worker) Work(ctx context.Context, job *river.Job[Job]) error {
	err := w.handler.Handle(ctx, job.Args)
	var later Later
	if errors.As(err, &later) {
		return river.JobSnooze(min(later.In, soon-time.Second-time.Millisecond))
	}
	return err
}

// retry spaces what fails for our own reasons: the database, mostly.
type retry struct{ now func() time.Time }

// NextRetry is in 1 to 2 s at first and in 30 to 60 s at last.
func (r *retry) NextRetry(job *rivertype.JobRow) time.Time {
	base := min(time.Second<<min(len(job.Errors), 6), 30*time.Second)
	return r.now().Add(base + rand.N(base))
}
