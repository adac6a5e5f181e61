import { describe, expect, it } from 'vitest'
import { type Answers, problemsOf, type Result, type RunRecord, reportOf } from './report.ts'

const leaseMs = 2000

function run(id: string, phase: RunRecord['phase'], attempt = 1, atMs = 0): RunRecord {
  return { id, phase, attempt, event: 'push', fence: attempt, atMs }
}

const goodRuns = [
  run('a', 'started'),
  run('a', 'finished'),
  run('b', 'started'),
  run('b', 'started', 2, leaseMs),
  run('b', 'finished', 2, leaseMs),
]

const goodAnswers: Answers = {
  genuine: 7,
  forged: 4,
  pings: 2,
  ran: 2,
  copies200: 3,
  copies202: 1,
  refused: 4,
  pingsAnswered: 2,
  cutOff: 1,
  unexpected: [],
}

function result(changes: Partial<Answers> = {}, runs: readonly RunRecord[] = goodRuns): Result {
  return {
    framework: 'express',
    answers: { ...goodAnswers, ...changes },
    expected: ['a', 'b'],
    killed: 'b',
    leaseMs,
    runs,
  }
}

describe('the report of the demo', () => {
  it('ends well when every count is right', () => {
    const { text, exitCode } = reportOf([result(), result()])
    expect(exitCode).toBe(0)
    expect(text).toContain('Every count is right.')
    expect(text.split('\n').slice(0, 2)).toEqual([
      'framework  received  ran  copies 200  copies 202  refused  pings  cut off  took over  lost  run twice',
      'express          13    2           3           1        4      2        1          1     0          0',
    ])
  })

  it.each<[string, Result, string]>([
    ['a lost delivery', result({}, goodRuns.slice(2)), '1 deliveries were lost'],
    ['a second run', result({}, [...goodRuns, run('a', 'finished')]), '1 deliveries ran twice'],
    ['a stranger', result({}, [...goodRuns, run('c', 'started')]), 'that was not to run'],
    ['an answer without a run', result({ ran: 3 }), '3 answers came from a handler'],
    ['a forgery let in', result({ refused: 3 }), '4 forged, but 3 refused'],
    ['a ping without its answer', result({ pingsAnswered: 1 }), '2 pings, but 1 answered'],
    ['a kill that hit nothing', result({ cutOff: 0 }), 'but 0 requests were cut off'],
    ['no takeover', result({}, goodRuns.slice(0, 3)), 'but 0 were'],
    ['a second partial run', result({}, [...goodRuns, run('a', 'started')]), 'but 4 started'],
    [
      'a takeover before the lease ended',
      result({}, [...goodRuns.slice(0, 3), run('b', 'started', 2, 1), run('b', 'finished', 2, 9)]),
      'after its lease had ended',
    ],
    [
      'a fence that stands still',
      result({}, [
        ...goodRuns.slice(0, 3),
        { ...run('b', 'started', 2, leaseMs), fence: 1 },
        run('b', 'finished', 2, leaseMs),
      ]),
      'the fence did not grow',
    ],
    ['copies that never met a run', result({ copies202: 0, copies200: 4 }), 'no copy met'],
    ['a request that is missing', result({ genuine: 8 }), 'do not add up'],
    ['an answer out of place', result({ unexpected: ['push x was answered 500'] }), 'answered 500'],
  ])('fails for %s', (_, wrong, message) => {
    expect(problemsOf(wrong).join('\n')).toContain(message)
    const { text, exitCode } = reportOf([result(), wrong])
    expect(exitCode).toBe(1)
    expect(text).toContain('WRONG:')
    expect(text).not.toContain('Every count is right.')
  })
})
