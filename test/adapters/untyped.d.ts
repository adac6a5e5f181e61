// Second majors under names of their own: the types of the other one fit what the tests use.
declare module 'express4' {
  import express from 'express'
  export default express
}

declare module 'koa2' {
  import Koa from 'koa'
  export default Koa
}
