package callback

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/cenkalti/backoff/v5"
	"github.com/labstack/echo/v4"
	"go.uber.org/zap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/functions"
)

// became is what became of a verdict; it serves as a metric label.
type became string

// What a verdict, or a request that brought none, became.
const (
	delivered       became = "delivered"       // the Broker has it
	inInbox         became = "inbox"           // the ChangeWorkload has it
	early           became = "early"           // the ChangeWorkload has it until its node is known
	dropped         became = "dropped"         // for an order or node that nobody knows
	unauthenticated became = "unauthenticated" // nothing was changed
	unconfigured    became = "unconfigured"    // there is no token to authenticate with
	malformed       became = "malformed"       // it does not say what it is about
	lost            became = "lost"            // neither Broker nor inbox took it
)

// errMalformed marks what the sender has to mend.
var errMalformed = errors.New("malformed")

// callback answers one POST, which brings one verdict or a batch of them.
func (r *receiver) callback(c echo.Context) error {
	// A sender that hangs up does not take its verdict back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), r.StoreTimeout)
	defer cancel()
	log := logging.FromContext(ctx)
	form := formOf(c.Request().Header)
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		r.count(ctx, form, malformed)
		return err
	}
	config, result, err := r.authenticate(ctx, c.Request().Header, body)
	if err != nil {
		r.count(ctx, form, result)
		log.Errorw("a callback was not believed; nothing was changed", "became", result, "error", err)
		return respond(c, result, "")
	}
	verdicts, err := read(form, c.Request().Header, body)
	if err != nil {
		r.count(ctx, form, malformed)
		log.Errorw("a callback cannot be read", "form", form, "error", err)
		return respond(c, malformed, err.Error())
	}
	worst, why := delivered, ""
	for _, v := range verdicts {
		result, err := r.accept(ctx, v, config)
		r.count(ctx, form, result)
		log := log.With("form", form, "order", v.said.BizExecOrderID, "node", v.said.NodeID,
			"stage", v.said.Stage, "verdict", v.said.Verdict, "became", result)
		if err != nil {
			log.Errorw("a verdict is not stored", zap.Error(err))
		} else {
			log.Infow("callback")
		}
		if statusFor(result) > statusFor(worst) {
			worst = result
			if errors.Is(err, errMalformed) {
				why = err.Error()
			}
		}
	}
	return respond(c, worst, why)
}

// statusFor is the answer to a result. Verdicts that were dropped are answered
// as those that were taken: the answer tells nobody which orders exist.
func statusFor(result became) int {
	switch result {
	case unauthenticated:
		return http.StatusUnauthorized
	case malformed:
		return http.StatusBadRequest
	case lost, unconfigured:
		return http.StatusServiceUnavailable
	default:
		return http.StatusOK
	}
}

func respond(c echo.Context, result became, msg string) error {
	status := statusFor(result)
	return c.JSON(status, answer{Success: status == http.StatusOK, Msg: msg})
}

// statusOf is the status of echo's own errors: a route that is not there, a
// body that is too long.
func statusOf(err error) int {
	var known *echo.HTTPError
	if errors.As(err, &known) {
		return known.Code
	}
	return http.StatusInternalServerError
}

// authenticate verifies the signature before anything is read from the body.
func (r *receiver) authenticate(ctx context.Context, header http.Header, body []byte) (altershield.Config, became, error) {
	// A verdict will not come again because the API server was away for a second.
	config, err := persist(ctx, func() (altershield.Config, error) {
		config, err := r.Server.Config(ctx)
		var mistake *functions.ConfigError
		if errors.As(err, &mistake) {
			err = backoff.Permanent(err)
		}
		return config, err
	})
	if err != nil {
		return config, unconfigured, err
	}
	err = altershield.Verify(header, config.HeaderPrefix, config.Platform, body, config.Token, r.Clock.Now(), config.MaxSkew)
	var auth *altershield.AuthError
	switch {
	case errors.As(err, &auth) && auth.Reason == altershield.AuthNoToken:
		return config, unconfigured, err
	case err != nil:
		return config, unauthenticated, err
	}
	return config, "", nil
}

func (r *receiver) count(ctx context.Context, f form, result became) {
	r.received.Add(ctx, 1, string(f), string(result))
}
