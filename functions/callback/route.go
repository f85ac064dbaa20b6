package callback

import (
	"context"
	"errors"
	"net/http"

	"github.com/cenkalti/backoff/v5"
	"github.com/labstack/echo/v4"
	"go.uber.org/zap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/functions"
)

// result is the result of a verdict or of a request, and a metric label.
type result string

const (
	resultDelivered       result = "delivered"       // accepted by the Broker
	resultInbox           result = "inbox"           // stored in the inbox
	resultEarly           result = "early"           // stored in the inbox until its node is known
	resultDropped         result = "dropped"         // for an unknown order or node
	resultUnauthenticated result = "unauthenticated" // rejected
	resultUnconfigured    result = "unconfigured"    // neither a server nor a token is configured
	resultMisconfigured   result = "misconfigured"   // the configuration names a server without a token, or is invalid in a key that callbacks depend on
	resultUnread          result = "unread"          // the body is too large, or did not arrive in time
	resultMalformed       result = "malformed"       // not a verdict
	resultBusy            result = "busy"            // too many bodies arrive
	// resultUnhandled: until the timeout the configuration could not be read or too many callbacks were
	// in progress, or the verdict was neither delivered nor stored. A pass may be retrieved later.
	resultUnhandled result = "unhandled"
)

// errMalformed marks errors that the sender has to correct.
var errMalformed = errors.New("malformed")

// callback handles one POST with one or several verdicts.
func (r *receiver) callback(c echo.Context) error {
	// A disconnected sender does not cancel its verdict.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), r.RequestTimeout)
	defer cancel()
	log := logging.FromContext(ctx)
	form := formOf(c.Request().Header)
	config, body, discard, res, err := r.authenticate(ctx, c)
	defer discard()
	if err != nil {
		r.count(ctx, form, res)
		log.Warnw("Callback rejected", "result", res, "error", err)
		c.Response().Header().Set("Connection", "close")
		if status, ok := errors.AsType[*echo.HTTPError](err); ok {
			return status
		}
		return respond(c, res, "")
	}
	select {
	case r.inProgress <- struct{}{}:
		defer func() { <-r.inProgress }()
	case <-ctx.Done():
		r.count(ctx, form, resultUnhandled)
		log.Errorw("Callback not handled in time", "maxInProgress", maxInProgress)
		return respond(c, resultUnhandled, "")
	}
	verdicts, err := read(form, c.Request().Header, body)
	if err != nil {
		r.count(ctx, form, resultMalformed)
		log.Errorw("Callback not readable", "form", form, "error", err)
		return respond(c, resultMalformed, err.Error())
	}
	worst, message := resultDelivered, ""
	request := *r
	request.Broker = &oneFailure{Deliverer: r.Broker}
	for _, v := range verdicts {
		res, err := request.accept(ctx, v, config)
		r.count(ctx, form, res)
		log := log.With("form", form, "order", v.data.BizExecOrderID, "node", v.data.NodeID,
			"stage", v.data.Stage, "verdict", v.data.Verdict, "result", res)
		if err != nil {
			log.Errorw("Verdict not stored", zap.Error(err))
		} else {
			log.Infow("Verdict received")
		}
		if statusFor(res) > statusFor(worst) {
			worst = res
			if errors.Is(err, errMalformed) {
				message = err.Error()
			}
		}
	}
	return respond(c, worst, message)
}

// statusFor returns the HTTP status of a result. Dropped and accepted verdicts have
// the same status, so that a response does not reveal which orders exist.
func statusFor(res result) int {
	switch res {
	case resultUnauthenticated:
		return http.StatusUnauthorized
	case resultMalformed, resultUnread:
		return http.StatusBadRequest
	case resultUnhandled, resultUnconfigured, resultMisconfigured, resultBusy:
		return http.StatusServiceUnavailable
	default:
		return http.StatusOK
	}
}

func respond(c echo.Context, res result, msg string) error {
	status := statusFor(res)
	return c.JSON(status, answer{Success: status == http.StatusOK, Msg: msg})
}

// statusOf returns the status of errors of echo: an unknown route, a body that is too
// large.
func statusOf(err error) int {
	if httpErr, ok := errors.AsType[*echo.HTTPError](err); ok {
		return httpErr.Code
	}
	return http.StatusInternalServerError
}

// authenticate reads the headers of the signature, then the body, and verifies it before
// it is parsed. discard frees the body.
func (r *receiver) authenticate(ctx context.Context, c echo.Context) (config altershield.Config, body []byte, discard func(), res result, err error) {
	discard = func() {}
	// Retry while the API server is unreachable: the server sends a verdict only once.
	var invalid *functions.ConfigError
	config, err = retryUntilDone(ctx, func() (altershield.Config, error) {
		config, err := r.Server.CallbackConfig(ctx)
		if errors.As(err, &invalid) {
			err = backoff.Permanent(err)
		}
		return config, err
	})
	switch {
	case invalid != nil:
		return config, nil, discard, resultMisconfigured, err
	case err != nil:
		return config, nil, discard, resultUnhandled, err
	}
	if config.Token == "" {
		return config, nil, discard, resultUnconfigured, errors.New("no token is configured")
	}
	signature, err := altershield.ReadSignature(c.Request().Header, config.HeaderPrefix, config.Platform, r.Clock.Now(), config.MaxSkew)
	if err != nil {
		return config, nil, discard, resultUnauthenticated, err
	}
	body, discard, err = r.readBody(ctx, c)
	switch {
	case errors.Is(err, errBusy):
		return config, nil, func() {}, resultBusy, err
	case err != nil:
		return config, nil, func() {}, resultUnread, err
	}
	err = signature.Verify(body, config.Token, config.PreviousToken)
	if err != nil {
		res = resultUnauthenticated
	}
	return config, body, discard, res, err
}

// readBody reads the body. One without a length counts as large.
func (r *receiver) readBody(ctx context.Context, c echo.Context) (body []byte, discard func(), err error) {
	switch length := c.Request().ContentLength; {
	case length > maxBody:
		return nil, nil, errTooLarge
	case length < 0 || length > maxSmall:
		return r.large.read(ctx, c.Response(), c.Request())
	default:
		return r.bodies.read(c.Response(), c.Request())
	}
}

func (r *receiver) count(ctx context.Context, f form, res result) {
	r.received.Add(ctx, 1, string(f), string(res))
}
